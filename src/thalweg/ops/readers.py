"""Readers: their handles, and reading from them. The state machine is the runtime's (runtime/readers.py).

Every op exists twice: with a resource handle (V2), and with a reference to a string as in the first graphs.
Source: TensorFlow's io_ops.cc, reader_ops.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import Kernel, asynchronous, source, stateful
from thalweg.ops._resources import CONTAINER, NO_GRADIENT, handle_shape, no_shapes, scalar_shape


def _define_handle(name: str, before: str, doc: str, after: str = "", after_v2: str = "") -> None:
    for version in ("", "V2"):
        more = after_v2 if version and after_v2 else after
        define_op(
            name + version,
            outputs="reader_handle: resource" if version else "reader_handle: Ref(string)",
            attrs=f"{before}{CONTAINER}{more}",
            shape=handle_shape,
            kernel=source(),
            stateful=True,
            gradient=NO_GRADIENT,
            doc=doc,
        )


_define_handle("WholeFileReader", "", "A reader whose records are whole files.")
_define_handle("TextLineReader", "skip_header_lines: int = 0, ", "A reader whose records are lines of text.")
_define_handle(
    "FixedLengthRecordReader",
    "header_bytes: int = 0, record_bytes: int, footer_bytes: int = 0, hop_bytes: int = 0, ",
    "A reader whose records are pieces of a fixed length.",
    after_v2=", encoding: string = ''",
)
_define_handle("TFRecordReader", "", "A reader of TFRecord files.", after=", compression_type: string = ''")
_define_handle("IdentityReader", "", "A reader whose records are the names themselves.")


def _define(
    name: str, kernel: Kernel, shape: Any, doc: str, inputs: str = "", outputs: str = "", queue: bool = False
) -> None:
    for version in ("", "V2"):
        handle = "resource" if version else "Ref(string)"
        arguments = [f"reader_handle: {handle}"]
        if queue:
            arguments.append(f"queue_handle: {handle}")
        define_op(
            name + version,
            inputs=", ".join([*arguments, inputs] if inputs else arguments),
            outputs=outputs,
            shape=shape,
            kernel=kernel,
            stateful=version == "V2",
            gradient=NO_GRADIENT,
            doc=doc,
        )


def _read_kernel(context: Any, reader: Any, queue: Any) -> Any:
    return context.resource(reader).read(context.op, context.resource(queue))


def _read_up_to_kernel(context: Any, reader: Any, queue: Any, num_records: Any) -> Any:
    return context.resource(reader).read_up_to(context.op, context.resource(queue), int(num_records))


def _restore_kernel(context: Any, reader: Any, state: Any) -> Any:
    if np.ndim(state):
        raise context.fail(
            InvalidArgumentError, f"Reader state must be scalar, but had shape: {np.shape(state)}"
        )
    return context.resource(reader).restore_state(context.op, np.asarray(state, object).item())


def _pair_shape(c: ShapeContext) -> list[Shape]:
    return [(), ()]


def _pairs_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(2, 0)
    return [(None,), (None,)]


def _restore_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(1, 0)
    return []


_define(
    "ReaderRead",
    asynchronous(_read_kernel),
    _pair_shape,
    "The next record, and a key that says where it is from; waits for a file name from the queue.",
    outputs="key: string, value: string",
    queue=True,
)
_define(
    "ReaderReadUpTo",
    asynchronous(_read_up_to_kernel),
    _pairs_shape,
    "Up to num_records records of one file, and their keys; waits for a file name from the queue.",
    inputs="num_records: int64",
    outputs="keys: string, values: string",
    queue=True,
)
_define(
    "ReaderNumRecordsProduced",
    stateful(lambda context, reader: np.int64(context.resource(reader).records_produced)),
    scalar_shape,
    "How many records a reader has given.",
    outputs="records_produced: int64",
)
_define(
    "ReaderNumWorkUnitsCompleted",
    stateful(lambda context, reader: np.int64(context.resource(reader).work_finished)),
    scalar_shape,
    "How many files a reader has read to their end.",
    outputs="units_completed: int64",
)
_define(
    "ReaderSerializeState",
    asynchronous(lambda context, reader: context.resource(reader).serialize_state(context.op)),
    scalar_shape,
    "The state of a reader, as a string.",
    outputs="state: string",
)
_define(
    "ReaderRestoreState",
    asynchronous(_restore_kernel),
    _restore_shape,
    "Sets a reader to a state that ReaderSerializeState gave.",
    inputs="state: string",
)
_define(
    "ReaderReset",
    asynchronous(lambda context, reader: context.resource(reader).reset(context.op)),
    no_shapes,
    "Sets a reader back to its start.",
)
