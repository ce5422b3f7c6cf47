"""Looking into checkpoints, and initialising variables from them.

Source: TensorFlow's checkpoint_utils.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.formats.checkpoint_reader import open_checkpoint
from thalweg.graph.emitter import emit
from thalweg.library import framework, tf_logging
from thalweg.library.checkpoint_state import latest_checkpoint
from thalweg.library.saveables import op_list_to_dict, saveables_of
from thalweg.library.variable_base import Variable
from thalweg.library.variable_store import variable_store


class CheckpointReader:
    """A checkpoint's tensors, as NumPy arrays. Made by NewCheckpointReader."""

    def __init__(self, filepattern: Any) -> None:
        self._file = open_checkpoint(os.fsdecode(os.fspath(filepattern)))

    def has_tensor(self, tensor_str: Any) -> bool:
        """Whether there is a tensor of that name."""
        return self._file.has(_text(tensor_str))

    def get_tensor(self, tensor_str: Any) -> Any:
        """The value of a tensor: an array of its own, or bytes or a NumPy scalar without dimensions."""
        value = self._file.read(_text(tensor_str))
        return value if value.ndim else value[()]

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shape of each tensor, by name."""
        return {name: list(self._file.shape(name)) for name in self._file.names()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The type of each tensor, by name."""
        return {name: self._file.dtype(name) for name in self._file.names()}

    def debug_string(self) -> bytes:
        """A line for each tensor: name, type and shape."""
        lines = [
            f"{n} ({self._file.dtype(n).proto_name}) [{','.join(map(str, self._file.shape(n)))}]\n"
            for n in self._file.names()
        ]
        return "".join(lines).encode()


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else name


def NewCheckpointReader(filepattern: Any) -> CheckpointReader:
    """The reader of a checkpoint of either version. NotFoundError without one, DataLossError for damage."""
    return CheckpointReader(filepattern)


def _checkpoint_path(ckpt_dir_or_file: Any) -> str | None:
    path = os.fsdecode(os.fspath(ckpt_dir_or_file))
    return latest_checkpoint(path) if os.path.isdir(path) else path


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """The reader of a checkpoint, or of the latest one of a folder. ValueError for a folder without one."""
    path = _checkpoint_path(ckpt_dir_or_file)
    if path is None:
        raise ValueError(
            f"Couldn't find 'checkpoint' file or checkpoints in given directory {ckpt_dir_or_file}"
        )
    return CheckpointReader(path)


def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """The value of a tensor in a checkpoint, or in the latest one of a folder."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """(name, shape) of each tensor in a checkpoint, or in the latest one of a folder; sorted."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


# ---- waiting for checkpoints -----------------------------------------------------------------------------


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], Any] | None = None,
) -> Iterator[str]:
    """The paths of checkpoints as they appear in a folder: the latest each time.

    At least min_interval_secs lie between two. Where none comes for `timeout` seconds it ends; with
    timeout_fn only if that returns something true.
    """
    last: str | None = None
    while True:
        path = _wait_for_new(checkpoint_dir, last, timeout)
        if path is not None:
            started = time.time()
            last = path
            yield path
            time.sleep(max(0.0, started + min_interval_secs - time.time()))
        elif timeout_fn is None:
            tf_logging.info("Timed-out waiting for a checkpoint (without timeout_fn).")
            return
        if timeout_fn is not None and timeout_fn():
            tf_logging.info("Done. No new checkpoints will be generated.")
            return


def _wait_for_new(folder: Any, last: str | None, timeout: float | None) -> str | None:
    pause = 1.0
    deadline = None if timeout is None else time.time() + timeout
    while True:
        path = latest_checkpoint(folder)
        if path is not None and path != last:
            return path
        if deadline is not None and time.time() + pause > deadline:
            return None
        time.sleep(pause)


# ---- initialising ----------------------------------------------------------------------------------------


def init_from_checkpoint(
    ckpt_dir_or_file: Any, assignment_map: Mapping[str, Any] | Sequence[tuple[str, Any]]
) -> None:
    """Makes variables start from a checkpoint: their initializers read it.

    assignment_map: pairs of (tensor in the checkpoint, variable, its name, or a list of slices), or of scopes
        ("scope/", "other/"; "/" for all): every variable of the scope by its name in it.

    Errors: ValueError for what isn't in the checkpoint or has another shape, and for unlike pairs.
    """
    path = _checkpoint_path(ckpt_dir_or_file)
    stored = load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map()
    assert path is not None
    pairs = assignment_map.items() if isinstance(assignment_map, Mapping) else assignment_map
    for name, target in sorted(pairs, key=lambda pair: pair[0]):
        variable = _variable_of(target)
        if variable is None:
            _init_scope(path, stored, name, target, ckpt_dir_or_file)
            continue
        if name not in stored:
            raise ValueError(f"Tensor {name} is not found in {ckpt_dir_or_file} checkpoint {stored}")
        if isinstance(variable, Variable) and not variable.get_shape().is_compatible_with(stored[name]):
            raise ValueError(
                f"Shape of variable {variable.name} ({variable.get_shape()}) doesn't match with shape of "
                f"tensor {name} ({stored[name]}) from checkpoint reader."
            )
        _set_initializers(variable, path, name)


def _variable_of(target: Any) -> Any:
    """A variable, or a list of the slices of one; None for a scope."""
    if isinstance(target, Variable):
        return target
    if isinstance(target, list) and all(isinstance(v, Variable) for v in target):
        return target
    variables = variable_store()._vars
    return variables.get(target) or _slices_of(target)


def _slices_of(name: str) -> list[Variable] | None:
    variables = variable_store()._vars
    found: list[Variable] = []
    while f"{name}/part_{len(found)}" in variables:
        found.append(variables[f"{name}/part_{len(found)}"])
    return found or None


def _init_scope(path: str, stored: Mapping[str, Any], from_scope: str, to_scope: str, given: Any) -> None:
    scope = to_scope.rpartition("/")[0]
    if not from_scope.endswith("/"):
        raise ValueError(
            f"Assignment map with scope only name {scope} should map to scope only {from_scope}. Should be "
            "'scope/': 'other_scope/'."
        )
    names = {
        name.partition("/part_")[0]
        for name in variable_store()._vars
        if not scope or name.startswith(f"{scope}/")
    }
    prefix = "" if from_scope == "/" else from_scope
    for name in sorted(names):
        rest = name[len(scope) + 1 :] if scope else name
        tensor = (prefix + rest).rstrip("/")
        if tensor not in stored:
            raise ValueError(f"Tensor {tensor} ({rest} in {from_scope}) is not found in {given} checkpoint")
        _set_initializers(_variable_of(name), path, tensor)


def _set_initializers(variable: Any, path: str, tensor: str) -> None:
    if isinstance(variable, Variable):
        _set_initializer(variable, path, tensor, "")
        return
    full_names = {v._save_slice_info.full_name for v in variable}
    if len(full_names) > 1:
        raise ValueError(f"Slices must all be from the same tensor: {' != '.join(sorted(full_names))}")
    for v in variable:
        _set_initializer(v, path, tensor, v._save_slice_info.spec)


def _set_initializer(variable: Any, path: str, tensor: str, slice_spec: str) -> None:
    with framework.device(variable.device), framework.device("/cpu:0"):
        restored = emit.operation(
            "RestoreV2",
            path,
            [tensor],
            [slice_spec],
            dtypes=[variable.dtype.base_dtype],
            name="checkpoint_initializer",
        ).outputs[0]
        ((name, op),) = op_list_to_dict([variable]).items()
        (saveable,) = saveables_of(op, name)
    initializer = saveable.restore([restored], None)
    variable._initializer_op = getattr(initializer, "op", initializer)
    restored.set_shape(variable.shape)
    variable._initial_value = restored
