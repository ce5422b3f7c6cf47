"""GraphDefs, functions included: imported, and planned as a session would."""

from __future__ import annotations

import random

from tensorboard.compat.proto import graph_pb2
from tests.fuzz import graphs

import thalweg as tf

NAME = "graphdef"
ALLOWED = graphs.ALLOWED


def seeds() -> list[bytes]:
    """Frozen graphs and graphs that call functions, as TensorFlow wrote them."""
    return [g.SerializeToString() for g in graphs.graph_seeds()]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Changes of bytes or of fields."""
    return graphs.mutated(rng, graph_pb2.GraphDef, data)


def run(data: bytes) -> None:
    """Imports the graph, exports it, and plans a run."""
    message = graphs.parsed(graph_pb2.GraphDef, data)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
        graph.as_graph_def(add_shapes=True)
        graphs.plan_all(graph)
