"""`thalweg checkpoint list | show | compare | convert`: looking into checkpoints, changing names in them."""

from __future__ import annotations

import datetime
import fnmatch
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from thalweg.base.errors import InvalidArgumentError, OpError
from thalweg.formats.bundle_reader import BundleReader
from thalweg.formats.bundle_writer import BundleWriter
from thalweg.formats.checkpoint_reader import CheckpointFile, open_checkpoint
from thalweg.formats.tensor_bytes import element_count
from thalweg.formats.tensor_slices import format_slice
from thalweg.library.checkpoint_state import get_checkpoint_state, latest_checkpoint

#: how a checkpoint is named on the command line
_PATH = click.argument("path")


@click.group()
def checkpoint() -> None:
    """Lists, shows, compares and converts checkpoints, of TensorFlow too.

    PATH is a checkpoint (model.ckpt-1000) or a folder: then its latest checkpoint.
    """


@contextmanager
def _opened(path: str) -> Iterator[CheckpointFile]:
    """The checkpoint of a path or a folder; tf.errors as messages."""
    prefix: str | None = re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", path)
    try:
        if os.path.isdir(path):
            prefix = latest_checkpoint(path)
            if prefix is None:
                raise click.ClickException(f"{path}: no checkpoint in this folder")
        with open_checkpoint(prefix or path) as reader:
            yield reader
    except OpError as e:
        raise click.ClickException(e.message) from e


def _console() -> Console:
    """Where it writes; wide where that is no terminal, so that nothing is cut off."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=200)


def _chosen(reader: CheckpointFile, pattern: str | None) -> list[str]:
    return [n for n in reader.names() if pattern is None or fnmatch.fnmatchcase(n, pattern)]


def _size(reader: CheckpointFile, name: str) -> int:
    return element_count(reader.shape(name)) * reader.dtype(name).size


def _bytes(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def _shape(shape: tuple[int, ...]) -> str:
    return "\\[" + ",".join(map(str, shape)) + "]"


# ---- list ------------------------------------------------------------------------------------------------


@checkpoint.command("list")
@_PATH
@click.option("--match", help="Only tensors whose name matches, such as '*/kernel'.")
@click.option("--by-size", is_flag=True, help="The largest first, instead of by name.")
def list_command(path: str, match: str | None, by_size: bool) -> None:
    """Lists the tensors of a checkpoint, or the checkpoints of a folder and the tensors of the latest."""
    console = _console()
    if os.path.isdir(path):
        _list_folder(console, path)
    with _opened(path) as reader:
        names = _chosen(reader, match)
        if by_size:
            names.sort(key=lambda n: -_size(reader, n))
        console.print(escape(reader.prefix), soft_wrap=True)
        table = Table()
        for column, justify in (
            ("tensor", "left"),
            ("type", "left"),
            ("shape", "left"),
            ("bytes", "right"),
            ("slices", "right"),
        ):
            table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
        for name in names:
            slices = len(reader.slices(name))
            size = _size(reader, name)
            table.add_row(
                escape(name),
                reader.dtype(name).name,
                _shape(reader.shape(name)),
                _bytes(size) if size or reader.dtype(name).size else "",
                str(slices or ""),
            )
        console.print(table)
        count = sum(element_count(reader.shape(n)) for n in names)
        total = sum(_size(reader, n) for n in names)
        version = 2 if isinstance(reader, BundleReader) else 1
        console.print(f"{len(names)} tensors, {count:,} elements, {_bytes(total)}; version {version}")


def _list_folder(console: Console, path: str) -> None:
    state = get_checkpoint_state(path)
    kept = list(state.all_model_checkpoint_paths) if state is not None else []
    found = [
        os.path.join(path, n.removesuffix(".index")) for n in sorted(os.listdir(path)) if n.endswith(".index")
    ]
    paths = list(dict.fromkeys([*kept, *found]))
    if not paths:
        raise click.ClickException(f"{path}: no checkpoint in this folder")
    console.print(escape(path), soft_wrap=True)
    table = Table()
    for column in ("checkpoint", "written", ""):
        table.add_column(column, overflow="fold")
    for prefix in paths:
        index = f"{prefix}.index"
        written = "missing"
        if os.path.exists(index):
            written = datetime.datetime.fromtimestamp(os.stat(index).st_mtime).isoformat(" ", "seconds")
        is_latest = state is not None and prefix == state.model_checkpoint_path
        note = "latest" if is_latest else "" if prefix in kept else "not in the state file"
        table.add_row(escape(os.path.basename(prefix)), written, note)
    console.print(table)


# ---- show ------------------------------------------------------------------------------------------------


@checkpoint.command()
@_PATH
@click.argument("names", nargs=-1, required=True)
@click.option("--full", is_flag=True, help="All elements, not only the first and last ones.")
def show(path: str, names: tuple[str, ...], full: bool) -> None:
    """Shows tensors: type, shape, statistics, values. NAMES may be patterns, such as 'dense/*'."""
    console = _console()
    with _opened(path) as reader:
        for pattern in names:
            found = [pattern] if reader.has(pattern) else _chosen(reader, pattern)
            if not found:
                raise click.ClickException(f"{reader.prefix} has no tensor '{pattern}'")
            for name in found:
                _show(console, reader, name, full)


def _show(console: Console, reader: CheckpointFile, name: str, full: bool) -> None:
    value = reader.read(name)
    console.print(f"[bold]{escape(name)}[/bold]  {reader.dtype(name).name} {_shape(value.shape)}")
    for extents in reader.slices(name):
        console.print(f"  slice {format_slice(extents)}")
    numbers = _numbers(value)
    finite = numbers[np.isfinite(numbers)] if numbers is not None else np.zeros(0)
    if finite.size:
        console.print(
            f"  min {finite.min():g}  max {finite.max():g}  mean {finite.mean():g}  std {finite.std():g}"
        )
    if numbers is not None and finite.size < numbers.size:
        console.print(f"  not finite: {numbers.size - finite.size} elements")
    threshold = value.size + 1 if full else 60
    shown = np.array2string(value, threshold=threshold, max_line_width=100)
    console.print(shown, markup=False, soft_wrap=True)


def _numbers(value: np.ndarray) -> np.ndarray | None:
    """The value as floats to compute with; None for strings and complex numbers."""
    if value.dtype == object or value.dtype.names or value.dtype.kind == "c":
        return None
    return value.astype(np.float64)


# ---- compare ---------------------------------------------------------------------------------------------


@checkpoint.command()
@click.argument("first")
@click.argument("second")
@click.option("--tolerance", default=0.0, help="The largest absolute difference that counts as none.")
def compare(first: str, second: str, tolerance: float) -> None:
    """Compares two checkpoints: names, types, shapes, values. Exit code 1 where they differ."""
    console = _console()
    with _opened(first) as a, _opened(second) as b:
        console.print(f"{escape(a.prefix)} and {escape(b.prefix)}", soft_wrap=True)
        table = Table()
        for column in ("tensor", "difference"):
            table.add_column(column, overflow="fold")
        names = sorted({*a.names(), *b.names()})
        differing = 0
        for name in names:
            difference = _difference(a, b, name, tolerance)
            if difference is not None:
                differing += 1
                table.add_row(escape(name), difference)
        if differing:
            console.print(table)
        console.print(f"{len(names)} tensors, {differing} differ")
    if differing:
        raise SystemExit(1)


def _difference(a: CheckpointFile, b: CheckpointFile, name: str, tolerance: float) -> str | None:
    """What is different about a tensor; None for nothing."""
    if not a.has(name):
        return "only in the second"
    if not b.has(name):
        return "only in the first"
    if a.dtype(name) is not b.dtype(name):
        return f"{a.dtype(name).name} and {b.dtype(name).name}"
    if a.shape(name) != b.shape(name):
        return f"{_shape(a.shape(name))} and {_shape(b.shape(name))}"
    x, y = a.read(name), b.read(name)
    if x.dtype == object:
        same = x.ravel().tolist() == y.ravel().tolist()
        return None if same else "other strings"
    if x.tobytes() == y.tobytes():
        return None
    if x.dtype.names:
        return "other values"
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    both_nan = np.isnan(x) & np.isnan(y)
    with np.errstate(invalid="ignore"):
        distance = np.where(both_nan | (x == y), 0.0, np.abs(x - y))
    largest = np.nan if np.isnan(distance).any() else float(distance.max(initial=0.0))
    if largest <= tolerance:
        return None
    return f"{np.count_nonzero(~(distance <= tolerance))} of {x.size} elements, by up to {largest:g}"


# ---- convert ---------------------------------------------------------------------------------------------


@checkpoint.command()
@click.argument("source")
@click.argument("destination")
@click.option(
    "--rename", multiple=True, metavar="PATTERN=NAME", help="A regular expression, and what takes its place."
)
@click.option(
    "--only", metavar="PATTERN", help="Only tensors whose (old) name matches this regular expression."
)
@click.option(
    "--drop", metavar="PATTERN", help="No tensors whose (old) name matches this regular expression."
)
@click.option("--dry-run", is_flag=True, help="Says what it would do.")
def convert(
    source: str, destination: str, rename: tuple[str, ...], only: str | None, drop: str | None, dry_run: bool
) -> None:
    """Writes SOURCE (of version 1 or 2) as DESTINATION (version 2), with other names.

    \b
    thalweg checkpoint convert old.ckpt new.ckpt --rename '^model/=' --rename 'weights$=kernel' --drop Adam
    """
    rules = [_rule(text) for text in rename]
    console = _console()
    with _opened(source) as reader:
        names: dict[str, str] = {}
        for old in reader.names():
            if (only and not re.search(only, old)) or (drop and re.search(drop, old)):
                continue
            new = old
            for pattern, replacement in rules:
                new = pattern.sub(replacement, new)
            if new in names.values():
                raise click.ClickException(f"two tensors would be named '{new}'")
            names[old] = new
            if new != old:
                console.print(f"{escape(old)} -> {escape(new)}")
        if not dry_run:
            _write(reader, destination, names)
        dropped = len(reader.names()) - len(names)
        what = "would be written" if dry_run else "written"
        console.print(f"{len(names)} tensors {what} to {escape(destination)}, {dropped} left out")


def _rule(text: str) -> tuple[re.Pattern[str], str]:
    pattern, equals, replacement = text.rpartition("=")
    if not equals:
        raise click.BadParameter(f"'{text}' is not PATTERN=NAME", param_hint="--rename")
    try:
        return re.compile(pattern), replacement
    except re.error as e:
        raise click.BadParameter(f"'{pattern}' is no regular expression: {e}", param_hint="--rename") from e


def _write(reader: CheckpointFile, destination: str, names: dict[str, str]) -> None:
    if os.path.realpath(destination) == os.path.realpath(reader.prefix):
        raise InvalidArgumentError(None, None, f"{destination}: source and destination are the same")
    with BundleWriter(destination) as writer:
        for old, new in sorted(names.items(), key=_new_name):
            slices = reader.slices(old)
            if not slices:
                writer.add(new, reader.read(old))
            for extents in slices:
                writer.add_slice(new, reader.shape(old), extents, reader.read(old, extents))


def _new_name(pair: tuple[str, str]) -> Any:
    return pair[1]
