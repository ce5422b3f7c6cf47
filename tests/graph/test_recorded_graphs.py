"""Graphs of whole programs against TensorFlow's, node by node, in the order of their making.

tests/golden/programs*.py hold the programs; what TensorFlow built was recorded by
tests/golden/record_graphs.py. The recording comes from TensorFlow 2.21's compat.v1, which builds some graphs
otherwise than TensorFlow 1.15, the version thalweg follows; and thalweg differs on purpose in a few places.
Every such difference is in the tables below.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import thalweg as tf
from thalweg.graph import graphdef, registry
from thalweg.graph.opdef import REQUIRED
from thalweg.graph.tensor_proto import proto_to_array

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))

import graph_programs  # noqa: E402
import graph_text  # noqa: E402
import programs_control_flow  # noqa: E402

Node = list[Any]

#: attributes that only TensorFlow 2 writes
TF2_ATTRIBUTES = {
    "_has_manual_control_dependencies": "bookkeeping of eager functions",
    "debug_name": "a second name of a resource",
    "grad_a": "says that a MatMul is a gradient",
    "grad_b": "the same",
}

#: nodes that TensorFlow 2.21 names otherwise than 1.15: pattern, replacement, why; the first that matches counts
RENAMED = [
    (r"^(gradients(_\d+)?)/grad_ys_0$", r"\1/Fill", "1.15 fills with a constant grad_ys_0"),
    (r"^(gradients(_\d+)?)/grad_ys_(\d+)$", r"\1/Fill_\3", "the same, for further ys"),
    (r"^(gradients(_\d+)?)/grad_ys_(\d+)/Const$", r"\1/grad_ys_\3", "the same"),
    (r"/Sum/reduction_indices_1$", "/Sum/reduction_indices", "see LEFT_OUT"),
]

#: nodes of TensorFlow 2.21 that thalweg does not make: pattern of name and op, why
LEFT_OUT = [
    (r"/Sum/reduction_indices = Const\(\) .*float32 \[0\]", "what a failed conversion of [] left behind"),
]

#: nodes whose control inputs thalweg leaves out: pattern of name, why
UNORDERED = [
    (
        r"^gradients(_\d+)?/(\w+/)*(Square|Exp|Log|Tanh|Sin)\w*_grad/(?!.*(Stack|_sync))",
        "TensorFlow makes a factor of a gradient wait for the gradient; XLA's scheduling needs no such hints",
    ),
]


def _recorded(name: str) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads((GOLDEN / "data" / name).read_text())
    graph_text.expand(recorded)
    return recorded


PROGRAMS = {**graph_programs.PROGRAMS, **programs_control_flow.PROGRAMS}
RECORDED = {**_recorded("graphs.json"), **_recorded("graphs_control_flow.json")}


def _default_of(op: str, attribute: str) -> Any:
    attr = registry.lookup(op).definition.attr_by_name.get(attribute)
    if attr is None or attr.default is REQUIRED:
        return None
    return graphdef.attr_to_proto(attr.type, attr.default)


def _renamed(name: str) -> str:
    for pattern, replacement, _ in RENAMED:
        new = re.sub(pattern, replacement, name)
        if new != name:
            return new
    return name


def _renamed_input(name: str) -> str:
    prefix = "^" if name.startswith("^") else ""
    base, colon, index = name.removeprefix("^").partition(":")
    return prefix + _renamed(base) + colon + index


def _expected(nodes: list[Node]) -> list[Node]:
    """The recorded nodes, with the differences above taken out."""
    result = []
    for name, op, inputs, device, attrs in nodes:
        if any(re.search(pattern, _text([name, op, inputs, device, attrs])) for pattern, _ in LEFT_OUT):
            continue
        attrs = {k: v for k, v in attrs.items() if k not in TF2_ATTRIBUTES}
        if "_class" in attrs:
            attrs["_class"] = [f"loc:@{_renamed(c.removeprefix('loc:@'))}" for c in attrs["_class"]]
        inputs = [_renamed_input(i) for i in inputs]
        data = [i for i in inputs if not i.startswith("^")]
        control = sorted(i for i in inputs if i.startswith("^"))
        if any(re.search(pattern, name) for pattern, _ in UNORDERED):
            control = []
        result.append([_renamed(name), op, data + control, device, attrs])
    return result


def _text(node: Node) -> str:
    name, op, inputs, device, attrs = node
    shown = ", ".join(f"{k}={v}" for k, v in sorted(attrs.items()))
    return f"{name} = {op}({', '.join(inputs)}) {{{shown}}} {device}".rstrip()


@pytest.mark.parametrize("name", PROGRAMS)
def test_graph(name: str) -> None:
    with tf.Graph().as_default() as graph:
        PROGRAMS[name](tf)
        built = graph_text.nodes(graph.as_graph_def(), _default_of, proto_to_array)
        collections = graph_text.collections(graph)
    assert [_text(n) for n in built] == [_text(n) for n in _expected(RECORDED[name]["nodes"])]
    assert collections == RECORDED[name]["collections"]
