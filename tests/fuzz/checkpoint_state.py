"""The file "checkpoint": one that can't be read is as none; a path in it may be anything."""

from __future__ import annotations

import os
import tempfile

from thalweg.library.checkpoint_state import get_checkpoint_state, latest_checkpoint, update_checkpoint_state
from thalweg.library.tf_logging import ERROR, get_verbosity, set_verbosity

NAME = "checkpoint_state"
#: a state that names no checkpoint
ALLOWED = (ValueError,)
_FOLDER = tempfile.mkdtemp(prefix="fuzz-state-")


def seeds() -> list[bytes]:
    """A state with two checkpoints."""
    update_checkpoint_state(_FOLDER, "model-2", ["model-1", "model-2"], None, [1.5, 2.5], 1.0)
    with open(os.path.join(_FOLDER, "checkpoint"), "rb") as file:
        return [file.read()]


def run(data: bytes) -> None:
    """Reads it."""
    with open(os.path.join(_FOLDER, "checkpoint"), "wb") as file:
        file.write(data)
    verbosity = get_verbosity()
    set_verbosity(ERROR + 10)
    try:
        get_checkpoint_state(_FOLDER)
        latest_checkpoint(_FOLDER)
    finally:
        set_verbosity(verbosity)
