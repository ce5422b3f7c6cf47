"""The resources that steps meet in: which class stands behind which op, found by handle or by node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thalweg.base import dtypes
from thalweg.base.errors import InvalidArgumentError
from thalweg.formats import record_sources as sources
from thalweg.formats.records import check_compression
from thalweg.graph.operation import Operation
from thalweg.runtime.accumulators import DenseAccumulator, SparseAccumulator
from thalweg.runtime.barriers import Barrier
from thalweg.runtime.queue_stores import FifoStore, PriorityStore, ShuffleStore, Store
from thalweg.runtime.queues import Queue, text
from thalweg.runtime.readers import Reader
from thalweg.runtime.resources import Handle, ResourceManager
from thalweg.runtime.staging import Mutex, StagingArea


def resource_name(op: Operation) -> tuple[str, str]:
    """The container and name of the resource that a node stands for."""
    attrs = op._attrs
    return attrs["container"].decode(), attrs["shared_name"].decode() or op._name


def resource_of(manager: ResourceManager, handle: Any) -> Any:
    """The resource behind a handle, made where it doesn't exist.

    InvalidArgumentError where a shared one exists that the node's attributes don't fit.
    """
    if type(handle) is not Handle:
        handle = handle.item()  # a handle that went through array ops
    if handle.generation == manager.generation:
        return handle.found
    generation = manager.generation
    handle.found = found(manager, handle.op)
    handle.generation = generation
    return handle.found


def found(manager: ResourceManager, op: Operation) -> Any:
    """The resource of a node that is no handle (Stage), or of a handle's node."""
    kind = op.type.removesuffix("V2")
    family, make, check = _KINDS[kind]
    container, name = resource_name(op)
    resource, made_by = manager.get_or_create((family, container, name), lambda: (make(op, name), op))
    if made_by is not op:
        if made_by.type.removesuffix("V2") != kind and family != "stage":
            raise InvalidArgumentError(
                None,
                op,
                f"Shared {family} '{name}' has type '{made_by.type}' that does not match type of Node "
                f"'{op.name}': {op.type}",
            )
        check(resource, made_by, op, name)
    return resource


def _queue(store: Callable[[Operation], Store], pads: bool = False) -> Callable[[Operation, str], Queue]:
    def make(op: Operation, name: str) -> Queue:
        attrs = op._attrs
        held_back = attrs.get("min_after_dequeue", 0)
        if 0 <= attrs["capacity"] <= held_back and held_back:
            raise InvalidArgumentError(
                None, op, f"min_after_dequeue {held_back} must be < capacity {attrs['capacity']}"
            )
        types, component_shapes = _components(op)
        kind = op.type.removesuffix("V2")
        return Queue(kind, name, store(op), types, component_shapes, attrs["capacity"], held_back, pads)

    return make


def _components(op: Operation) -> tuple[list[Any], list[Any]]:
    attrs = op._attrs
    types, component_shapes = list(attrs["component_types"]), list(attrs["shapes"])
    if component_shapes and len(component_shapes) != len(types):
        raise InvalidArgumentError(
            None,
            op,
            f"Different number of component types.  Types: {_types(types)}, "
            f"Shapes: {_shapes(component_shapes)}",
        )
    if op.type.startswith("PriorityQueue"):
        return [dtypes.int64, *types], [(), *component_shapes] if component_shapes or not types else []
    return types, component_shapes


def _types(types: Any) -> str:
    return ", ".join(_TYPE_NAMES.get(d.name, d.name) for d in types)


def _shapes(component_shapes: Any) -> str:
    return f"[{','.join(map(text, component_shapes))}]"


def _check_queue(queue: Queue, made_by: Operation, op: Operation, name: str) -> None:
    """A queue that is shared must be what each of its nodes says."""
    mine, theirs = op._attrs, made_by._attrs

    def fail(what: str, has: Any, wanted: Any, end: str = "") -> None:
        was = "were" if what.endswith("s") else "was"
        text = f"Shared queue '{name}' has {what} {has} but requested {what} {was} {wanted}{end}"
        raise InvalidArgumentError(None, op, text)

    if mine["capacity"] != theirs["capacity"]:
        fail("capacity", theirs["capacity"], mine["capacity"])
    if mine["component_types"] != theirs["component_types"]:
        fail("component types", _types(theirs["component_types"]), _types(mine["component_types"]))
    if mine["shapes"] != theirs["shapes"]:
        fail("component shapes", _shapes(theirs["shapes"]), _shapes(mine["shapes"]))
    if mine.get("min_after_dequeue") != theirs.get("min_after_dequeue"):
        fail("min_after_dequeue", theirs["min_after_dequeue"], mine["min_after_dequeue"], ".")
    seeds = [(a.get("seed"), a.get("seed2")) for a in (theirs, mine)]
    if seeds[0] != seeds[1] and seeds[1] != (0, 0):
        raise InvalidArgumentError(
            None,
            op,
            f"Shared queue '{name}' has random seeds {seeds[0]} but requested seeds are {seeds[1]}.",
        )


def _check_attrs(*names: str) -> Callable[[Any, Operation, Operation, str], None]:
    def check(resource: Any, made_by: Operation, op: Operation, name: str) -> None:
        for attr in names:
            has, wanted = made_by._attrs[attr], op._attrs[attr]
            if has != wanted:
                raise InvalidArgumentError(
                    None, op, f"Shared '{name}' has {attr} {has}, but '{op.name}' asks for {wanted}"
                )

    return check


def _accumulator(make: Any) -> Callable[[Operation, str], Any]:
    def made(op: Operation, name: str) -> Any:
        attrs = op._attrs
        return make(op.type, name, attrs["dtype"], attrs["shape"], attrs["reduction_type"] == b"MEAN")

    return made


def _stage(op: Operation, name: str) -> StagingArea:
    return StagingArea(name, op._attrs["capacity"], op._attrs["memory_limit"])


def _fixed_length_reader(op: Operation, name: str) -> Reader:
    attrs = op._attrs
    sizes = [attrs[a] for a in ("header_bytes", "record_bytes", "footer_bytes", "hop_bytes")]
    for what, size, least in zip(("header", "record", "footer", "hop"), sizes, (0, 1, 0, 0), strict=True):
        if size < least:
            raise InvalidArgumentError(None, op, f"{what}_bytes must be >= {least} not {size}")
    encoding = check_compression(attrs.get("encoding", b"").decode())
    return Reader(
        "FixedLengthRecordReader", name, lambda work: sources.FixedLengthSource(work, sizes, encoding)
    )


def _record_reader(op: Operation, name: str) -> Reader:
    compression = check_compression(op._attrs["compression_type"].decode())
    return Reader("TFRecordReader", name, lambda work: sources.TFRecordSource(work, compression))


def _text_reader(op: Operation, name: str) -> Reader:
    skip = op._attrs["skip_header_lines"]
    if skip < 0:
        raise InvalidArgumentError(None, op, f"skip_header_lines must be >= 0 not {skip}")
    return Reader("TextLineReader", name, lambda work: sources.TextLineSource(work, skip))


def _nothing(resource: Any, made_by: Operation, op: Operation, name: str) -> None:
    return


_TYPE_NAMES = {"float32": "float", "float64": "double", "float16": "half"}
_ACCUMULATOR_ATTRS = _check_attrs("dtype", "shape", "reduction_type")
_SHUFFLED = _queue(lambda op: ShuffleStore(op._attrs["seed"], op._attrs["seed2"]))

#: op -> (family, f(op, name) -> resource, what checks a shared one)
_KINDS: dict[str, tuple[str, Callable[[Operation, str], Any], Callable[..., None]]] = {
    "FIFOQueue": ("queue", _queue(lambda op: FifoStore()), _check_queue),
    "RandomShuffleQueue": ("queue", _SHUFFLED, _check_queue),
    "PaddingFIFOQueue": ("queue", _queue(lambda op: FifoStore(), pads=True), _check_queue),
    "PriorityQueue": ("queue", _queue(lambda op: PriorityStore()), _check_queue),
    "Barrier": (
        "barrier",
        lambda op, name: Barrier(name, *_components(op)),
        _check_attrs("component_types", "shapes"),
    ),
    "ConditionalAccumulator": ("accumulator", _accumulator(DenseAccumulator), _ACCUMULATOR_ATTRS),
    "ResourceConditionalAccumulator": ("accumulator", _accumulator(DenseAccumulator), _ACCUMULATOR_ATTRS),
    "SparseConditionalAccumulator": ("accumulator", _accumulator(SparseAccumulator), _ACCUMULATOR_ATTRS),
    "FixedLengthRecordReader": (
        "reader",
        _fixed_length_reader,
        _check_attrs("header_bytes", "record_bytes", "footer_bytes", "hop_bytes"),
    ),
    "IdentityReader": (
        "reader",
        lambda op, name: Reader("IdentityReader", name, sources.IdentitySource, keeps_state=True),
        _nothing,
    ),
    "TFRecordReader": ("reader", _record_reader, _check_attrs("compression_type")),
    "TextLineReader": ("reader", _text_reader, _check_attrs("skip_header_lines")),
    "WholeFileReader": (
        "reader",
        lambda op, name: Reader("WholeFileReader", name, sources.WholeFileSource, keeps_state=True),
        _nothing,
    ),
    "Mutex": ("mutex", lambda op, name: Mutex(name), _nothing),
    **dict.fromkeys(
        ("Stage", "Unstage", "StagePeek", "StageSize", "StageClear"),
        ("stage", _stage, _nothing),
    ),
}
