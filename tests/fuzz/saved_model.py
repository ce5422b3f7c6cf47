"""SavedModels: the file saved_model.pb, loaded as far as no checkpoint is needed."""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import zlib

from tests.fuzz import graphs

import thalweg as tf
from thalweg.formats.protos.saved_model_pb2 import SavedModel
from thalweg.library.saved_model import loader

NAME = "saved_model"
ALLOWED = graphs.ALLOWED
_FOLDER = tempfile.mkdtemp(prefix="fuzz-saved-model-")


def seeds() -> list[bytes]:
    """One of TensorFlow 1.x with an asset and a main op, one of TensorFlow 2."""
    found = []
    for name in ("saved_v1", "saved_v2_module"):
        found.append((graphs.FILES / name / "saved_model.pb").read_bytes())
        for meta_graph in graphs.parsed(SavedModel, found[-1]).meta_graphs:
            graphs.learn(meta_graph.graph_def)
    return found


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Changes of bytes or of fields."""
    return graphs.mutated(rng, SavedModel, data)


def run(data: bytes) -> None:
    """Loads each graph, and looks its signatures, assets and main op up."""
    with open(os.path.join(_FOLDER, "saved_model.pb"), "wb") as out:
        out.write(data)
    model = loader.SavedModelLoader(_FOLDER)
    for meta_graph in model.saved_model.meta_graphs[:3]:
        with tf.Graph().as_default() as graph:
            model.load_graph(graph, meta_graph.meta_info_def.tags)
            loader.get_init_op(meta_graph)
            loader.get_asset_tensors(_FOLDER, meta_graph)
            for signature in meta_graph.signature_def.values():
                tf.saved_model.is_valid_signature(signature)
                for info in (*signature.inputs.values(), *signature.outputs.values()):
                    with contextlib.suppress(KeyError, ValueError):
                        tf.saved_model.get_tensor_from_tensor_info(info)
            if zlib.crc32(data) % 8 == 0:  # it takes long, and graphdef does it too
                graphs.plan_all(graph)
