"""What a public namespace says of a name that it doesn't have."""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import sys
from collections.abc import Callable
from typing import Any

#: namespaces of TensorFlow 1.x that thalweg leaves out
NOT_PART = ("contrib", "keras", "estimator")


@functools.cache
def _tensorflow_names() -> frozenset[str]:
    """Every public name of TensorFlow 1.15, as "nn.relu"."""
    text = importlib.resources.files("thalweg.library").joinpath("tf1_names.txt").read_text()
    return frozenset(text.split())


def missing(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a public module: says which name is missing, and what exists.

    AttributeError; for names that TensorFlow 1.15 has, it says that thalweg doesn't have them yet.
    """

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        path = f"{module}.{name}".removeprefix("thalweg.")
        if path.partition(".")[0] in NOT_PART:
            raise AttributeError(f"tf.{path} of TensorFlow 1.x is not part of thalweg")
        known = [n for n in vars(sys.modules[module]) if not n.startswith("_")]
        near = difflib.get_close_matches(name, known, 4, 0.7)
        hint = f"; what comes near: {', '.join(near)}" if near else ""
        if path in _tensorflow_names() or any(n.startswith(path + ".") for n in _tensorflow_names()):
            raise AttributeError(f"tf.{path} of TensorFlow 1.x is not built in thalweg yet{hint}")
        raise AttributeError(f"module '{module}' has no attribute '{name}' (nor has TensorFlow 1.15){hint}")

    return __getattr__
