"""What the targets graphdef, metagraph and saved_model share: seeds from the recorded files, and changes of messages."""

from __future__ import annotations

import logging
import pathlib
import random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from tensorboard.compat.proto import graph_pb2
from tests.fuzz.driver import mutate_bytes

import thalweg as tf
from thalweg.base.errors import InternalError
from thalweg.plan.pipeline import PlanOptions, make_plan

tf.logging.set_verbosity(tf.logging.FATAL)
logging.getLogger("thalweg").setLevel(logging.ERROR)

FILES = pathlib.Path(__file__).parents[1] / "golden" / "data" / "files"
#: what TensorFlow raises for bad graphs
ALLOWED = (ValueError, TypeError, KeyError, OSError, RuntimeError)
_NUMBERS = (0, 1, -1, 2, 3, 100, 65536, 2**31 - 1, -(2**31), 2**31, 2**62, 2**63 - 1, -(2**63))
_TEXTS = ("", "^", ":", "a:0", "^a", "x:-1", "x:99999999999999999999", "/", "import", "\0", "\u00e9", "a" * 1000)


def parsed(kind: Any, data: bytes) -> Any:
    """The message in data. ValueError where it is none."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError as e:
        raise ValueError(str(e)) from None
    return message


def mutated(rng: random.Random, kind: Any, data: bytes) -> bytes:
    """A change or a few of the bytes, or of the fields of the message."""
    if rng.randrange(4) == 0:
        return mutate_bytes(rng, data)
    try:
        message = parsed(kind, data)
    except ValueError:
        return mutate_bytes(rng, data)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        change(rng, message)
    return message.SerializeToString()


def change(rng: random.Random, message: Any) -> None:
    """One change somewhere inside."""
    while True:
        fields = message.ListFields()
        if not fields:
            return
        field, value = rng.choice(fields)
        if not field.is_repeated:
            if field.message_type is not None and rng.randrange(8):
                message = value
                continue
            _change_single(rng, message, field)
            return
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key = rng.choice(sorted(value, key=str))
            inner = value[key]
            if rng.randrange(6) == 0:
                del value[key]
                return
            if hasattr(inner, "ListFields"):
                message = inner
                continue
            return
        if field.message_type is not None and rng.randrange(8):
            message = rng.choice(value)
            continue
        _change_list(rng, field, value)
        return


def _value(rng: random.Random, field: Any, old: Any) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return mutate_bytes(rng, old) if rng.randrange(2) else rng.choice(_TEXTS).encode()
        return rng.choice((*_TEXTS, old + "x", old[:-1], "^" + old, old + ":1", *_names))
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e38))
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return not old
    return rng.choice((*_NUMBERS, old + 1, old - 1))


#: names that a change may put somewhere: ops, and nodes and functions of the seeds
_names: list[str] = ["Const", "Identity", "While", "If", "NextIteration", "Merge", "Switch", "Enter", "Exit", "NoOp"]


def _change_single(rng: random.Random, message: Any, field: Any) -> None:
    if field.message_type is not None or rng.randrange(8) == 0:
        message.ClearField(field.name)
        return
    try:
        setattr(message, field.name, _value(rng, field, getattr(message, field.name)))
    except (ValueError, TypeError):  # a number that the field can't hold
        message.ClearField(field.name)


def _change_list(rng: random.Random, field: Any, value: Any) -> None:
    i, kind = rng.randrange(len(value)), rng.randrange(4)
    if kind == 0:
        del value[i]
    elif kind == 1:
        if field.message_type is not None:
            value.add().CopyFrom(value[i])
        else:
            value.append(value[i])
    elif field.message_type is None:
        try:
            value[i] = _value(rng, field, value[i])
        except (ValueError, TypeError):
            del value[i]
    else:  # two change places: one takes the other's contents
        value[i].CopyFrom(rng.choice(value))


def learn(graph_def: Any) -> None:
    """Adds the names in a seed to those that changes use."""
    _names.extend(sorted({n.name for n in graph_def.node} | {n.op for n in graph_def.node})[:60])
    _names.extend(f.signature.name for f in graph_def.library.function)


def plan_all(graph: tf.Graph) -> None:
    """Plans a run of what a graph ends in, as a session does: functions are inlined, constants folded."""
    skipped = ("Placeholder", "Merge", "Switch")  # a Merge in a loop has a value for each iteration
    ends = [t for op in graph.get_operations() if op.type not in skipped for t in op.outputs if not t.consumers()]
    ends = [t for t in ends if t.dtype.name not in ("resource", "variant") and graph.is_fetchable(t)]
    targets = [op for op in graph.get_operations() if not op.outputs]
    for fetches, what in ((ends, targets), (ends[:1], [])):
        try:
            make_plan(graph, [], fetches, what, PlanOptions(check=True))
        except InternalError as e:  # a pass broke the graph: that may not be
            raise AssertionError(str(e)) from e


def graph_seeds() -> list[Any]:
    """The recorded GraphDefs."""
    seeds = []
    for path in sorted(FILES.glob("f*.pb")):
        if path.stat().st_size < 60_000:
            seeds.append(parsed(graph_pb2.GraphDef, path.read_bytes()))
            learn(seeds[-1])
    return seeds
