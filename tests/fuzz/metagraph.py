"""MetaGraphs: imported with their collections, and exported again."""

from __future__ import annotations

import random

from tensorboard.compat.proto import meta_graph_pb2
from tests.fuzz import graphs

import thalweg as tf

NAME = "metagraph"
ALLOWED = graphs.ALLOWED


def seeds() -> list[bytes]:
    """A training graph with a loop, a branch, a queue and all kinds of collections."""
    data = (graphs.FILES / "metagraph.meta").read_bytes()
    graphs.learn(graphs.parsed(meta_graph_pb2.MetaGraphDef, data).graph_def)
    return [data]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Changes of bytes or of fields; often of a collection."""
    if rng.randrange(2):
        return graphs.mutated(rng, meta_graph_pb2.MetaGraphDef, data)
    message = graphs.parsed(meta_graph_pb2.MetaGraphDef, data) if data else meta_graph_pb2.MetaGraphDef()
    if not message.collection_def:
        return graphs.mutated(rng, meta_graph_pb2.MetaGraphDef, data)
    graphs.change(rng, message.collection_def[rng.choice(sorted(message.collection_def))])
    return message.SerializeToString()


def run(data: bytes) -> None:
    """Imports the MetaGraph, and exports what came of it."""
    message = graphs.parsed(meta_graph_pb2.MetaGraphDef, data)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(message)
        tf.train.export_meta_graph()
