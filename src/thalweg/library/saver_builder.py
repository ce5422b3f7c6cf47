"""The nodes of a Saver. Source: TensorFlow's saver.py; names of nodes are as there."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from tensorboard.compat.proto.saver_pb2 import SaverDef

from thalweg.base import device_name
from thalweg.base import dtypes as types
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework
from thalweg.library import saveables as objects
from thalweg.library.framework import name_scope
from thalweg.library.grouping import group, with_dependencies
from thalweg.library.partitioned_variable import PartitionedVariable
from thalweg.library.saveables import checked_saveables, op_list_to_dict, saved_shape

Saveables = Sequence[objects.SaveableObject]
PerDevice = list[tuple[str, list[objects.SaveableObject]]]


class BaseSaverBuilder:
    """Builds a Saver's nodes; subclasses may build others (save_op, restore_op, bulk_restore)."""

    SaveSpec = objects.SaveSpec
    SaveableObject = objects.SaveableObject
    VariableSaveable = objects.ReferenceVariableSaveable
    ResourceVariableSaveable = objects.ResourceVariableSaveable

    def __init__(self, write_version: int = SaverDef.V2) -> None:
        self._write_version = write_version

    # ---- parts that subclasses replace -----------------------------------------------------------------

    def save_op(self, filename_tensor: Tensor, saveables: Saveables) -> Operation:
        """The operation that saves the saveables under a prefix."""
        specs = [spec for saveable in saveables for spec in saveable.specs]
        version_1 = self._write_version == SaverDef.V1
        return emit.operation(
            "SaveSlices" if version_1 else "SaveV2",
            filename_tensor,
            [spec.name for spec in specs],
            [spec.slice_spec for spec in specs],
            [spec.tensor for spec in specs],
            name="save" if version_1 else None,
        )

    def bulk_restore(
        self,
        filename_tensor: Tensor,
        saveables: Saveables,
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> list[Tensor]:
        """The tensors of all saveables, restored."""
        tensors: list[Tensor] = []
        for saveable in saveables:
            with framework.device(on_cpu(saveable.device) if saveable.device else None):
                tensors.extend(self.restore_op(filename_tensor, saveable, preferred_shard))
        return tensors

    def restore_op(
        self, filename_tensor: Tensor, saveable: objects.SaveableObject, preferred_shard: int
    ) -> list[Tensor]:
        """The tensors of one saveable, restored."""
        return [
            emit.operation(
                "RestoreV2", filename_tensor, [s.name], [s.slice_spec], dtypes=[s.dtype.base_dtype]
            ).outputs[0]
            for s in saveable.specs
        ]

    def sharded_filename(self, filename_tensor: Tensor, shard: int, num_shards: Any) -> Tensor:
        """The name of a shard's file."""
        return emit("ShardedFilename", filename_tensor, shard, num_shards)

    # ---- saving ----------------------------------------------------------------------------------------

    def _add_save_ops(self, filename_tensor: Tensor, saveables: Saveables) -> Tensor:
        """A tensor with the prefix, there when the saveables are saved under it."""
        return with_dependencies([self.save_op(filename_tensor, saveables)], filename_tensor)

    def _add_sharded_save_ops(self, prefix: Tensor, per_device: PerDevice) -> Tensor:
        """The same for one shard per device: each saves its own, then the shards become one checkpoint.

        The shards are in a folder of their own until then, "<prefix>_temp_<unique>". In version 1 each is a
        file that stays what it is.
        """
        if self._write_version == SaverDef.V1:
            return self._add_sharded_save_ops_v1(prefix, per_device)
        part = emit("StringJoin", [prefix, f"_temp_{uuid.uuid4().hex}/part"])
        num_shards = emit.constant(len(per_device), types.int32, name="num_shards")
        prefixes, saves = [], []
        device = ""
        for shard, (device, saveables) in enumerate(per_device):
            with framework.device(on_cpu(device)):
                shard_prefix = self.sharded_filename(part, shard, num_shards)
                prefixes.append(shard_prefix)
                saves.append(self._add_save_ops(shard_prefix, saveables))
        with framework.control_dependencies([s.op for s in saves]), framework.device(on_cpu(device)):
            merge = emit.operation("MergeV2Checkpoints", prefixes, prefix, delete_old_dirs=True)
            with framework.control_dependencies([merge]):
                return emit("Identity", prefix)

    def _add_sharded_save_ops_v1(self, path: Tensor, per_device: PerDevice) -> Tensor:
        num_shards = emit.constant(len(per_device), types.int32, name="num_shards")
        saves = []
        for shard, (device, saveables) in enumerate(per_device):
            with framework.device(device):
                shard_path = self.sharded_filename(path, shard, num_shards)
                saves.append(self._add_save_ops(shard_path, saveables))
        with framework.control_dependencies([s.op for s in saves]):
            return emit("ShardedFilespec", path, num_shards)

    # ---- restoring -------------------------------------------------------------------------------------

    def _add_restore_ops(
        self,
        filename_tensor: Tensor,
        saveables: Saveables,
        restore_sequentially: bool,
        reshape: bool,
        preferred_shard: int = -1,
        name: str = "restore_all",
    ) -> Operation:
        """The operation that restores the saveables."""
        tensors = self.bulk_restore(filename_tensor, saveables, preferred_shard, restore_sequentially)
        assigns, at = [], 0
        for saveable in saveables:
            to = [saved_shape(spec.tensor) for spec in saveable.specs] if reshape else None
            n = len(saveable.specs)
            assigns.append(saveable.restore(tensors[at : at + n], to))
            at += n
        return group(*assigns, name=name)

    def _add_sharded_restore_ops(
        self, filename_tensor: Tensor, per_device: PerDevice, restore_sequentially: bool, reshape: bool
    ) -> Operation:
        restores = []
        for shard, (device, saveables) in enumerate(per_device):
            with framework.device(device):
                restores.append(
                    self._add_restore_ops(
                        filename_tensor, saveables, restore_sequentially, reshape, shard, "restore_shard"
                    )
                )
        return group(*restores, name="restore_all")

    # ---- all of it -------------------------------------------------------------------------------------

    def build(
        self,
        names_to_saveables: Any,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        filename: str | None = "model",
    ) -> Any:
        """Adds the nodes; returns a SaverDef. The arguments are Saver's.

        Errors: TypeError for what is no variable, ValueError for names or variables that aren't unique.
        """
        if not isinstance(names_to_saveables, dict):
            names_to_saveables = op_list_to_dict(names_to_saveables)
        saveables = checked_saveables(names_to_saveables)
        with name_scope(name, "save", [s.op for s in saveables if s.op is not None]):
            path = framework.placeholder_with_default(filename or "model", shape=(), name="filename")
            path = framework.placeholder_with_default(path, shape=(), name="Const")
            if sharded:
                per_device = _by_device(saveables)
                save = self._add_sharded_save_ops(path, per_device)
                restore = self._add_sharded_restore_ops(path, per_device, restore_sequentially, reshape)
            else:
                save = self._add_save_ops(path, saveables)
                restore = self._add_restore_ops(path, saveables, restore_sequentially, reshape)
        _make_concatenations()
        return SaverDef(
            filename_tensor_name=path.name,
            save_tensor_name=save.name,
            restore_op_name=restore.name,
            max_to_keep=max_to_keep or 0,
            sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=self._write_version,
        )


class BulkSaverBuilder(BaseSaverBuilder):
    """Restores all tensors of a device by one node."""

    def bulk_restore(
        self,
        filename_tensor: Tensor,
        saveables: Saveables,
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> list[Tensor]:
        """The tensors of all saveables, restored."""
        specs = [spec for saveable in saveables for spec in saveable.specs]
        with framework.device("cpu:0"):
            restore = emit.operation(
                "RestoreV2",
                filename_tensor,
                [spec.name for spec in specs],
                [spec.slice_spec for spec in specs],
                dtypes=[spec.dtype.base_dtype for spec in specs],
            )
        return list(restore.outputs)


def on_cpu(device: str) -> str:
    """The CPU beside a device."""
    return str(
        device_name.DeviceSpec.from_string(device).replace(device_type="CPU", device_index=0).to_string()
    )


def _by_device(saveables: Saveables) -> PerDevice:
    """The saveables of each device, sorted by device. ValueError for one that is on several."""
    groups: dict[str, list[objects.SaveableObject]] = {}
    for saveable in saveables:
        devices = {device_name.canonical(spec.device or "") for spec in saveable.specs}
        if len(devices) != 1:
            raise ValueError(f"All tensors of a saveable object must be on the same device: {saveable.name}")
        groups.setdefault(devices.pop(), []).append(saveable)
    return sorted(groups.items())


def _make_concatenations() -> None:
    """Partitioned variables in collections get the node that concatenates them: a MetaGraph speaks of it."""
    graph = get_default_graph()
    for key in graph.get_all_collection_keys():
        for element in graph.get_collection(key):
            if isinstance(element, PartitionedVariable):
                try:
                    graph.get_operation_by_name(element.name)
                except KeyError:
                    element.as_tensor()
