"""Send and Recv: the two ends of an edge between devices. Made by plan.partition; runtime.sendrecv runs them.

Source: TensorFlow's sendrecv_ops.cc.
"""

from __future__ import annotations

from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import Kernel, Kind

#: what the two ends agree on: together with frame and iteration it is the key of the message
KEY_ATTRS = (
    "tensor_name: string, send_device: string, send_device_incarnation: int, recv_device: string, "
    "client_terminated: bool = False"
)
_BY_PLAN = NotDifferentiable("made by the plan")


def _unknown(c: ShapeContext) -> list[Shape]:
    return [None] * len(c.op._outputs)


for _prefix, _where in (("_", "a device"), ("_Host", "the host's memory")):
    define_op(
        f"{_prefix}Send",
        inputs="tensor: T",
        attrs=f"T: type, {KEY_ATTRS}",
        shape=_unknown,
        kernel=Kernel(Kind.SEND, lambda: None),
        stateful=True,
        gradient=_BY_PLAN,
        doc=f"Sends a tensor in {_where} to the Recv of the same attributes, or the news that it is dead.",
    )
    define_op(
        f"{_prefix}Recv",
        outputs="tensor: tensor_type",
        attrs=f"tensor_type: type, {KEY_ATTRS}",
        shape=_unknown,
        kernel=Kernel(Kind.RECV, lambda: None),
        stateful=True,
        gradient=_BY_PLAN,
        doc=f"The tensor that the Send of the same attributes sends, in {_where}.",
    )
