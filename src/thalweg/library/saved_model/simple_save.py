"""A SavedModel in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thalweg.library.graph_keys import GraphKeys
from thalweg.library.saved_model import signature_constants, tag_constants
from thalweg.library.saved_model.builder import SavedModelBuilder
from thalweg.library.saved_model.signature_def_utils import predict_signature_def


def simple_save(
    session: Any,
    export_dir: Any,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Any = None,
) -> None:
    """Writes the session's graph and variables as a SavedModel to be served.

    inputs, outputs: tensors by name; they become the default signature.
    """
    key = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session,
        tags=[tag_constants.SERVING],
        signature_def_map={key: predict_signature_def(inputs, outputs)},
        assets_collection=session.graph.get_collection(GraphKeys.ASSET_FILEPATHS),
        main_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()
