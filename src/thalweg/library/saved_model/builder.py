"""SavedModels written. Source: TensorFlow's builder_impl.py."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from google.protobuf import any_pb2
from tensorboard.compat.proto import meta_graph_pb2, types_pb2

from thalweg.formats.protos.saved_model_pb2 import SavedModel
from thalweg.graph.convert import get_default_graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework, gfile, tf_logging
from thalweg.library.meta_graph import write_message
from thalweg.library.saved_model import constants
from thalweg.library.saver import Saver
from thalweg.library.variables import saveable_objects


class SavedModelBuilder:
    """Writes a model, for one set of tags after another, into a folder.

    export_dir: must not exist, or be empty (AssertionError). First add_meta_graph_and_variables, then
    add_meta_graph for other graphs over the same variables, then save.
    """

    def __init__(self, export_dir: Any) -> None:
        self._export_dir = export_dir.decode() if isinstance(export_dir, bytes) else os.fspath(export_dir)
        self._saved_model = SavedModel(saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION)
        self._has_saved_variables = False
        if not gfile.Exists(self._export_dir):
            gfile.MakeDirs(self._export_dir)
        elif gfile.ListDirectory(self._export_dir):
            raise AssertionError(
                "Export directory already exists, and isn't empty. Please choose a different export "
                f"directory, or delete all the contents of the specified directory: {self._export_dir}"
            )

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Sequence[Any] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Adds the session's graph, and writes its variables and assets.

        signature_def_map: SignatureDefs by key. assets_collection: constant string tensors with the paths of
        files that the model needs; they are copied. main_op: runs when the model is loaded. saver: by default
        one of all variables. AssertionError when called twice, or for TensorInfos without name or dtype.
        """
        if self._has_saved_variables:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. Please invoke "
                "`add_meta_graph()` instead."
            )
        _check_signatures(signature_def_map)
        with sess.graph.as_default():
            self._add_collections(assets_collection, main_op, legacy_init_op)
            saver = _saver(saver)
            folder = os.path.join(self._export_dir, constants.VARIABLES_DIRECTORY)
            gfile.MakeDirs(folder)
            path = os.path.join(folder, constants.VARIABLES_FILENAME)
            saver.save(sess, path, write_meta_graph=False, write_state=False)
            self._add(saver, tags, signature_def_map, clear_devices, strip_default_attrs)
        self._has_saved_variables = True

    def add_meta_graph(
        self,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Sequence[Any] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Adds the default graph, over the variables written before. AssertionError where none were."""
        if not self._has_saved_variables:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. Please invoke "
                "`add_meta_graph_and_variables()` first."
            )
        _check_signatures(signature_def_map)
        self._add_collections(assets_collection, main_op, legacy_init_op)
        self._add(_saver(saver), tags, signature_def_map, clear_devices, strip_default_attrs)

    def _add(
        self,
        saver: Any,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None,
        clear_devices: bool,
        strip_default_attrs: bool,
    ) -> None:
        meta_graph_def = saver.export_meta_graph(
            clear_devices=clear_devices, strip_default_attrs=strip_default_attrs
        )
        meta_graph_def.meta_info_def.tags.extend(tags)
        for key, signature in (signature_def_map or {}).items():
            meta_graph_def.signature_def[key].CopyFrom(signature)
        self._saved_model.meta_graphs.append(meta_graph_def)

    def _add_collections(
        self,
        assets: Sequence[Any] | None,
        main_op: Operation | None,
        legacy_init_op: Operation | None,
    ) -> None:
        self._write_assets(assets or ())
        for key, op in ((constants.MAIN_OP_KEY, main_op), (constants.LEGACY_INIT_OP_KEY, legacy_init_op)):
            if op is None:
                continue
            if not isinstance(op, Operation):
                raise TypeError(f"{key} needs to be an Operation: {op!r}")
            if get_default_graph().get_collection(key):
                raise ValueError(f"graph already contains one or more elements in the collection {key}.")
            framework.add_to_collection(key, op)

    def _write_assets(self, assets: Sequence[Any]) -> None:
        """Copies files into assets/, and notes in a collection which tensors hold their paths."""
        names: dict[str, str] = {}  # by path
        folder = os.path.join(self._export_dir, constants.ASSETS_DIRECTORY)
        for tensor in assets:
            source = _asset_path(tensor)
            if source not in names:
                names[source] = _free_name(os.path.basename(source), names.values())
                gfile.MakeDirs(folder)
                gfile.Copy(source, os.path.join(folder, names[source]), overwrite=True)
            asset = meta_graph_pb2.AssetFileDef(filename=names[source])
            asset.tensor_info.name = tensor.name
            holder = any_pb2.Any(
                type_url="type.googleapis.com/tensorflow.AssetFileDef", value=asset.SerializeToString()
            )
            framework.add_to_collection(constants.ASSETS_KEY, holder)
        if names:
            tf_logging.info("Assets written to: %s", folder)

    def save(self, as_text: bool = False) -> bytes:
        """Writes the file saved_model.pb (or .pbtxt); returns its path, as bytes like TensorFlow."""
        name = constants.SAVED_MODEL_FILENAME_PBTXT if as_text else constants.SAVED_MODEL_FILENAME_PB
        gfile.MakeDirs(self._export_dir)
        path = write_message(self._saved_model, os.path.join(self._export_dir, name), as_text)
        tf_logging.info("SavedModel written to: %s", path)
        return path.encode()


def _saver(saver: Any) -> Any:
    return saver or Saver(saveable_objects(), sharded=True, allow_empty=True)


def _asset_path(tensor: Any) -> str:
    """The path in a constant string tensor. TypeError for another kind of tensor, ValueError for none."""
    if not isinstance(tensor, Tensor):
        raise TypeError("Asset path tensor must be a Tensor.")
    if tensor.op.type != "Const":
        raise TypeError("Asset path tensor must be of type constant.")
    if tensor.dtype.base_dtype.name != "string":
        raise TypeError(f"Asset path tensor must be of dtype string, but was {tensor.dtype.name}")
    value = tensor.op._attrs["value"]
    if value.size != 1:
        raise TypeError("Asset path tensor must be a scalar.")
    path: str = value.item().decode()
    if not path:
        raise ValueError(f"Invalid asset filepath: {tensor!r}")
    return path


def _free_name(name: str, taken: Iterable[str]) -> str:
    """name, or name_1, name_2 ...: files of other folders may have the same name."""
    names, result, i = set(taken), name, 1
    while result in names:
        result = f"{name}_{i}"
        i += 1
    return result


def _check_signatures(signature_def_map: Mapping[str, Any] | None) -> None:
    for key, signature in (signature_def_map or {}).items():
        if key in (constants.INIT_OP_SIGNATURE_KEY, constants.TRAIN_OP_SIGNATURE_KEY):
            raise KeyError(f'SignatureDef map key "{key}" is reserved for initialization or training.')
        for info in (*signature.inputs.values(), *signature.outputs.values()):
            if info.WhichOneof("encoding") is None:
                raise AssertionError(
                    "All TensorInfo protos used in the SignatureDefs must have one of the 'encoding' fields "
                    f"(e.g., name or coo_sparse) set: {info}"
                )
            if info.WhichOneof("encoding") == "name" and (
                not info.name or info.dtype == types_pb2.DT_INVALID
            ):
                raise AssertionError(
                    "All TensorInfo protos used in the SignatureDefs must have the name and dtype fields "
                    f"set: {info}"
                )
