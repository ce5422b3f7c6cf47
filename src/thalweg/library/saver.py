"""tf.train.Saver: saves and restores variables, and keeps track of checkpoints.

Source: TensorFlow's saver.py.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from tensorboard.compat.proto.saver_pb2 import SaverDef
from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

from thalweg.base import errors
from thalweg.client.session import BaseSession
from thalweg.formats.checkpoint_reader import open_checkpoint
from thalweg.graph.convert import get_default_graph
from thalweg.library import checkpoint_state, framework, tf_logging
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.meta_graph import export_meta_graph
from thalweg.library.proto_functions import register_proto_function
from thalweg.library.saver_builder import BulkSaverBuilder
from thalweg.library.saver_fit import check_restore, explained
from thalweg.library.training_util import global_step as global_step_value
from thalweg.library.variables import saveable_objects

#: the tensor in which TensorFlow 2 stores how objects hang together
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class Saver:
    """Saves variables under their names, and restores them.

    var_list: variables (also partitioned ones, SaveableObjects), or a dict of those by the names to save them
        under. None: all global variables.
    reshape: a restored value may have another shape with as many elements.
    sharded: one data file per device.
    max_to_keep: how many checkpoints are kept; older ones are removed. None or 0: all.
    keep_checkpoint_every_n_hours: from time to time, one that would be removed is kept.
    name: the name scope of the nodes ("save").
    restore_sequentially: taken for programs that pass it; a device's variables are restored by one node.
    saver_def: the SaverDef of nodes that are in the graph already; name is the scope they were imported to.
    builder: what makes the nodes. defer_build: they are made by build().
    allow_empty: without variables it does nothing; else that is an error.
    write_version: SaverDef.V2 or V1. Both are read, whatever it is.
    pad_step_number: "model-00000012" instead of "model-12". save_relative_paths: the folder can be moved.
    filename: what is saved to and restored from where nothing is fed.

    A save is whole or not there at all; a restore assigns everything or nothing. Errors: ValueError,
    TypeError for arguments that don't fit.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = SaverDef.V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        if defer_build and var_list:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Either set defer_build=False or "
                "var_list=None."
            )
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._max_to_keep = max_to_keep
        self._keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self._name = name
        self._restore_sequentially = restore_sequentially
        self.saver_def = saver_def
        self._builder = builder
        self._is_built = False
        self._allow_empty = allow_empty
        self._is_empty: bool | None = None
        self._write_version = write_version
        self._pad_step_number = pad_step_number
        self._filename = filename
        self._save_relative_paths = save_relative_paths
        self._last_checkpoints: list[tuple[str, float]] = []
        self._checkpoints_to_be_deleted: list[tuple[str, float]] = []
        self._next_checkpoint_time = math.inf
        self._object_restore_saver: Saver | None = None
        if not defer_build:
            self.build()

    # ---- building --------------------------------------------------------------------------------------

    def build(self) -> None:
        """Adds the nodes; once."""
        if self._is_built:
            return
        self._is_built = True
        if self.saver_def is None:
            if self._var_list is None:
                self._var_list = saveable_objects()
            if not self._var_list:
                if not self._allow_empty:
                    raise ValueError("No variables to save")
                self._is_empty = True
                return
            self._is_empty = False
            builder = self._builder or BulkSaverBuilder(self._write_version)
            self._builder = builder
            self.saver_def = builder.build(
                self._var_list,
                reshape=self._reshape,
                sharded=self._sharded,
                max_to_keep=self._max_to_keep,
                keep_checkpoint_every_n_hours=self._keep_checkpoint_every_n_hours,
                name=self._name,
                restore_sequentially=self._restore_sequentially,
                filename=self._filename,
            )
        elif self._name:
            for field in _NAMES:
                setattr(self.saver_def, field, f"{self._name}/{getattr(self.saver_def, field)}")
        self._check_saver_def()
        self._write_version = self.saver_def.version
        self._next_checkpoint_time = time.time() + self.saver_def.keep_checkpoint_every_n_hours * 3600

    def _check_saver_def(self) -> None:
        if not isinstance(self.saver_def, SaverDef):
            raise ValueError(f"saver_def must be a saver_pb2.SaverDef: {self.saver_def}")
        if not self.saver_def.save_tensor_name:
            raise ValueError(f"saver_def must specify the save_tensor_name: {self.saver_def}")
        if not self.saver_def.restore_op_name:
            raise ValueError(f"saver_def must specify the restore_op_name: {self.saver_def}")

    def as_saver_def(self) -> Any:
        """The SaverDef message that describes it."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The SaverDef, names without export_scope; None where its nodes are elsewhere."""
        if export_scope is None:
            return self.saver_def
        if not all(getattr(self.saver_def, field).startswith(export_scope) for field in _NAMES):
            return None
        result = SaverDef()
        result.CopyFrom(self.saver_def)
        for field in _NAMES:
            setattr(result, field, getattr(result, field).removeprefix(f"{export_scope.rstrip('/')}/"))
        return result

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """The Saver of a SaverDef, over nodes that are in the graph, imported into import_scope."""
        return Saver(saver_def=saver_def, name=import_scope)

    # ---- which checkpoints there are -------------------------------------------------------------------

    @property
    def last_checkpoints(self) -> list[str]:
        """The paths of the checkpoints that it wrote and hasn't removed, oldest first."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: list[str]) -> None:
        """Says which checkpoints there are, of unknown age."""
        assert isinstance(last_checkpoints, list)
        self._last_checkpoints = [(path, math.inf) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: list[tuple[str, float]]) -> None:
        """Says which checkpoints there are: (path, when it was written)."""
        assert isinstance(last_checkpoints_with_time, list)
        self._last_checkpoints = last_checkpoints_with_time

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Takes up the checkpoints of an earlier process; those that no longer exist are left out."""
        found = []
        for path in checkpoint_paths:
            try:
                times = checkpoint_state.get_checkpoint_mtimes([path])
            except errors.NotFoundError:
                continue  # somebody is just removing it
            if times:
                found.append((path, times[0]))
        self.set_last_checkpoints_with_time(found)

    def _record(self, path: str) -> None:
        """Puts a new checkpoint at the end of the list; the oldest beyond the limit is to be removed."""
        if not self.saver_def.max_to_keep:
            return
        self._last_checkpoints = [p for p in self._last_checkpoints if p[0] != path]
        self._last_checkpoints.append((path, time.time()))
        if len(self._last_checkpoints) > self.saver_def.max_to_keep:
            self._checkpoints_to_be_deleted.append(self._last_checkpoints.pop(0))

    def _remove_old(self, meta_graph_suffix: str) -> None:
        if not self._checkpoints_to_be_deleted:
            return
        path, written = self._checkpoints_to_be_deleted.pop(0)
        if written > self._next_checkpoint_time:
            self._next_checkpoint_time += self.saver_def.keep_checkpoint_every_n_hours * 3600
            return
        try:
            checkpoint_state.remove_checkpoint(path, self.saver_def.version, meta_graph_suffix)
        except errors.OpError as e:
            tf_logging.warning("Ignoring: %s", e)

    # ---- saving ----------------------------------------------------------------------------------------

    def save(
        self,
        sess: Any,
        save_path: Any,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Writes a checkpoint, and removes one where there are too many. Returns its path; None if empty.

        global_step: a number, or a tensor (or its name) that is one: becomes part of the path.
        latest_filename: the file that says which checkpoints there are ("checkpoint"). write_state: whether
            it is written.
        write_meta_graph: whether the graph is written beside it, with meta_graph_suffix.

        On return the checkpoint is on the disk. Whenever it is cut off, the one before is whole. Errors:
        TypeError for what is no session; ValueError for a folder that doesn't exist; RuntimeError before
        build().
        """
        if not self._is_built:
            raise RuntimeError("`build()` should be called before save if defer_build==True")
        if self._write_version != SaverDef.V2:
            tf_logging.warning(
                "TensorFlow's V1 checkpoint format has been deprecated. Consider switching to the more "
                "efficient V2 format: `tf.train.Saver(write_version=tf.train.SaverDef.V2)` now on by default."
            )
        latest_filename = latest_filename or "checkpoint"
        if os.path.split(latest_filename)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        path = os.fsdecode(os.fspath(save_path))
        folder = os.path.dirname(path)
        if global_step is not None:
            step = global_step if isinstance(global_step, _INTEGERS) else global_step_value(sess, global_step)
            path = f"{path}-{int(step):08d}" if self._pad_step_number else f"{path}-{int(step)}"
        elif os.path.basename(path) == latest_filename and not self._sharded:
            raise ValueError(f"'latest_filename' collides with 'save_path': '{latest_filename}' and '{path}'")
        if not isinstance(sess, BaseSession):
            raise TypeError(f"'sess' must be a Session; {sess}")
        saved: str | None = None
        if not self._is_empty:
            saved = self._run_save(sess, path, folder)
            if write_state:
                self._record(saved)
                checkpoint_state.update_checkpoint_state(
                    folder,
                    saved,
                    self.last_checkpoints,
                    latest_filename,
                    save_relative_paths=self._save_relative_paths,
                )
                self._remove_old(meta_graph_suffix)
        if write_meta_graph:
            with sess.graph.as_default():
                self.export_meta_graph(
                    checkpoint_state.meta_graph_filename(path, meta_graph_suffix),
                    strip_default_attrs=strip_default_attrs,
                    save_debug_info=save_debug_info,
                )
        return saved

    def _run_save(self, sess: Any, path: str, folder: str) -> str:
        try:
            saved = sess.run(self.saver_def.save_tensor_name, {self.saver_def.filename_tensor_name: path})
        except (errors.FailedPreconditionError, errors.NotFoundError) as e:
            if folder and not os.path.isdir(folder):
                raise ValueError(f"Parent directory of {path} doesn't exist, can't save.") from e
            raise
        return saved.decode("utf-8", "surrogateescape") if isinstance(saved, bytes) else str(saved)

    # ---- restoring -------------------------------------------------------------------------------------

    def restore(self, sess: Any, save_path: Any) -> None:
        """Gives the variables the values that they have in a checkpoint, of either version: all or none.

        Errors: ValueError where there is no checkpoint; one error that names all that doesn't fit,
        NotFoundError for names, InvalidArgumentError for types and shapes; DataLossError for a damaged file.
        """
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        path = os.fsdecode(os.fspath(save_path))
        if not checkpoint_state.checkpoint_exists(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        tf_logging.info("Restoring parameters from %s", path)
        try:
            check_restore(sess.graph.get_operation_by_name(self.saver_def.restore_op_name), path)
            sess.run(self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: path})
        except errors.NotFoundError as e:
            keys = _object_keys(path)
            if keys is None:
                raise explained(e, "a Variable name or other graph key that is missing") from e
            self._restore_objects(sess, path, keys)
        except errors.InvalidArgumentError as e:
            raise explained(e, "a mismatch between the current graph and the graph") from e

    def _restore_objects(self, sess: Any, path: str, keys: dict[str, str]) -> None:
        """From a checkpoint of TensorFlow 2, by the names that the variables had where it was written."""
        tf_logging.warning(
            "Restoring an object-based checkpoint using a name-based saver. This may be somewhat fragile, "
            "and will re-build the Saver. Instead, consider loading object-based checkpoints using "
            "tf.train.Checkpoint()."
        )
        if self._object_restore_saver is None:
            with sess.graph.as_default():
                named = self._var_list if isinstance(self._var_list, dict) else None
                variables = named or {v.op.name: v for v in self._var_list or saveable_objects()}
                missing = sorted(set(variables) - set(keys))
                if missing:
                    raise errors.NotFoundError(
                        None,
                        None,
                        f"Objects not found in checkpoint {path} of TensorFlow 2: {', '.join(missing)}. It "
                        f"has {', '.join(sorted(keys)[:50])}",
                    )
                self._object_restore_saver = Saver(
                    {keys[name]: v for name, v in variables.items()}, name="object_save"
                )
        self._object_restore_saver.restore(sess, path)

    # ---- the graph -------------------------------------------------------------------------------------

    def export_meta_graph(
        self,
        filename: str | None = None,
        collection_list: Sequence[str] | None = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """The default graph, its collections and how to restore it, as a MetaGraphDef; to filename too."""
        return export_meta_graph(
            filename=filename,
            graph_def=get_default_graph().as_graph_def(add_shapes=True),
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
            save_debug_info=save_debug_info,
        )


register_proto_function(GraphKeys.SAVERS, SaverDef, Saver.to_proto, Saver.from_proto)

_INTEGERS = (int, np.integer)
_NAMES = ("filename_tensor_name", "save_tensor_name", "restore_op_name")


def _object_keys(path: str) -> dict[str, str] | None:
    """For a checkpoint of TensorFlow 2: variables' names and the keys they are stored under; else None."""
    with open_checkpoint(path) as reader:
        if not reader.has(_OBJECT_GRAPH):
            return None
        graph = TrackableObjectGraph()
        try:
            graph.ParseFromString(reader.read(_OBJECT_GRAPH).item())
        except (DecodeError, ValueError, TypeError) as e:
            raise errors.DataLossError(None, None, f"{path}: {_OBJECT_GRAPH} is damaged") from e
    return {a.full_name: a.checkpoint_key for node in graph.nodes for a in node.attributes}


def get_saver_or_default() -> Saver | None:
    """The only Saver of the collection SAVERS, made where there is none. RuntimeError for several."""
    savers = framework.get_collection(GraphKeys.SAVERS)
    if savers:
        if len(savers) > 1:
            raise RuntimeError(
                f"More than one item in collection {GraphKeys.SAVERS}. Please indicate which one to use by "
                "passing it to the constructor."
            )
        return savers[0]
    saver = Saver(sharded=True, allow_empty=True)
    framework.add_to_collection(GraphKeys.SAVERS, saver)
    return saver
