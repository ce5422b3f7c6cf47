"""The file "checkpoint" of a folder, which says which checkpoints there are; and the files of a checkpoint.

Source: TensorFlow's checkpoint_management.py.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from typing import Any

from google.protobuf import text_format
from tensorboard.compat.proto.saver_pb2 import SaverDef

from thalweg.base import errors
from thalweg.formats.atomic import write_atomically
from thalweg.formats.checkpoint_v1 import matching_files
from thalweg.formats.file_errors import file_error, file_errors
from thalweg.formats.protos.checkpoint_pb2 import CheckpointState
from thalweg.library import tf_logging


def _path(path: Any) -> str:
    return os.fsdecode(os.fspath(path))


def generate_checkpoint_state_proto(
    save_dir: Any,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: list[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> Any:
    """A CheckpointState: the latest checkpoint, and all that are kept, oldest first.

    Where save_dir is relative, relative paths are made relative to it. ValueError where there is not one time
    stamp per path.
    """
    save_dir = _path(save_dir)
    paths = list(all_model_checkpoint_paths or [])
    if not paths or paths[-1] != model_checkpoint_path:
        if paths:
            tf_logging.info(
                "%s is not in all_model_checkpoint_paths. Manually adding it.", model_checkpoint_path
            )
        paths.append(model_checkpoint_path)
    if all_model_checkpoint_timestamps and len(all_model_checkpoint_timestamps) != len(paths):
        raise ValueError(
            f"Checkpoint timestamps, if provided, must match checkpoint paths (got paths {paths} and "
            f"timestamps {all_model_checkpoint_timestamps})"
        )
    if not os.path.isabs(save_dir):
        paths = [p if os.path.isabs(p) else os.path.relpath(p, save_dir) for p in paths]
        if not os.path.isabs(model_checkpoint_path):
            model_checkpoint_path = os.path.relpath(model_checkpoint_path, save_dir)
    return CheckpointState(
        model_checkpoint_path=model_checkpoint_path,
        all_model_checkpoint_paths=paths,
        all_model_checkpoint_timestamps=list(all_model_checkpoint_timestamps or ()),
        last_preserved_timestamp=last_preserved_timestamp or 0.0,
    )


def _state_path(save_dir: str, latest_filename: str | None) -> str:
    return os.path.join(save_dir, latest_filename or "checkpoint")


def update_checkpoint_state(
    save_dir: Any,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: list[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
    save_relative_paths: bool = False,
) -> None:
    """Writes the file "checkpoint" (or latest_filename) of a folder, at one moment.

    save_relative_paths: absolute paths are written relative to the folder, so that it can be moved.
    RuntimeError where a checkpoint has the name of the file.
    """
    save_dir = _path(save_dir)
    paths = all_model_checkpoint_paths
    if save_relative_paths:

        def relative(path: str) -> str:
            return os.path.relpath(path, save_dir) if os.path.isabs(path) else path

        model_checkpoint_path = relative(model_checkpoint_path)
        paths = [relative(p) for p in paths or ()]
    state = generate_checkpoint_state_proto(
        save_dir, model_checkpoint_path, paths, all_model_checkpoint_timestamps, last_preserved_timestamp
    )
    path = _state_path(save_dir, latest_filename)
    if path == state.model_checkpoint_path:
        raise RuntimeError(
            f"Save path '{model_checkpoint_path}' conflicts with path used for checkpoint state.  Please use "
            "a different save path."
        )
    write_atomically(path, text_format.MessageToString(state).encode())


def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> Any:
    """The CheckpointState of a folder, paths joined to it; None where it has none that can be read.

    ValueError for one that names no checkpoint.
    """
    checkpoint_dir = _path(checkpoint_dir)
    path = _state_path(checkpoint_dir, latest_filename)
    if not os.path.exists(path):
        return None
    state = CheckpointState()
    try:
        with file_errors(path), open(path, encoding="utf-8") as file:
            text_format.Parse(file.read(), state)
    except (errors.OpError, text_format.ParseError) as e:
        tf_logging.warning("%s: %s", type(e).__name__, e)
        tf_logging.warning("%s: Checkpoint ignored", path)
        return None
    if not state.model_checkpoint_path:
        raise ValueError(f"Invalid checkpoint state loaded from {checkpoint_dir}")
    state.model_checkpoint_path = os.path.join(checkpoint_dir, state.model_checkpoint_path)
    for i, p in enumerate(state.all_model_checkpoint_paths):
        state.all_model_checkpoint_paths[i] = os.path.join(checkpoint_dir, p)
    return state


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The path of the latest checkpoint of a folder, or None where there is none."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    path: str = state.model_checkpoint_path
    if checkpoint_exists(path):
        return path
    tf_logging.error("Couldn't match files for checkpoint %s", path)
    return None


def _main_file(prefix: str) -> str | None:
    """The file whose being there makes a checkpoint: the index, or version 1's data."""
    for pattern in (f"{prefix}.index", prefix):
        found = [path for path in matching_files(pattern) if not os.path.isdir(path)]
        if found:
            return found[0]
    return None


def checkpoint_exists(checkpoint_prefix: Any) -> bool:
    """Whether there is a checkpoint, of either version, under that prefix."""
    return _main_file(_path(checkpoint_prefix)) is not None


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[Any]) -> list[float]:
    """When the checkpoints were written, in seconds; those that don't exist are left out."""
    times = []
    for prefix in checkpoint_prefixes:
        path = _main_file(_path(prefix))
        if path is not None:
            with file_errors(path):
                times.append(os.stat(path).st_mtime_ns / 1e9)
    return times


def remove_checkpoint(
    checkpoint_prefix: Any,
    checkpoint_format_version: int = SaverDef.V2,
    meta_graph_suffix: str = "meta",
) -> None:
    """Removes the files of a checkpoint, the index before the data: what is left is never half of one."""
    prefix = _path(checkpoint_prefix)
    patterns = [meta_graph_filename(prefix, meta_graph_suffix)]
    if checkpoint_format_version == SaverDef.V2:
        patterns += [f"{prefix}.index", f"{glob.escape(prefix)}.data-?????-of-?????"]
    else:
        patterns.append(prefix)
    for pattern in patterns:
        for path in matching_files(pattern):
            try:
                os.remove(path)
            except FileNotFoundError:
                tf_logging.warning("'%s' was removed by somebody else", path)
            except OSError as e:
                raise file_error(path, e) from e


def meta_graph_filename(checkpoint_filename: str, meta_graph_suffix: str = "meta") -> str:
    """The MetaGraph's file of a checkpoint."""
    return re.sub(r"-[\d\?]+-of-\d+$", "", checkpoint_filename) + f".{meta_graph_suffix}"
