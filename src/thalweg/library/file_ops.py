"""Whole files as nodes, and lists of files."""

from __future__ import annotations

from typing import Any

from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.arguments import scope
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.variables import Variable


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """All of a file. NotFoundError where there is none."""
    return emit("ReadFile", filename, name=name)


def write_file(filename: Any, contents: Any, name: str | None = None) -> Operation:
    """Makes or replaces a file, and the folders above it."""
    return emit.operation("WriteFile", filename, contents, name=name)


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The paths that match a pattern, or any of a vector of patterns, sorted."""
    return emit("MatchingFiles", pattern, name=name)


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """A local variable that keeps the paths that match when it is initialised."""
    with scope(name, "matching_filenames") as prefix:
        make: Any = Variable
        return make(
            name=prefix,
            initial_value=matching_files(pattern),
            trainable=False,
            validate_shape=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )
