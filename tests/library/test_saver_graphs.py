"""The nodes of Savers against TensorFlow's, in the order of their making (tests/golden/checkpoint_programs.py)."""

from __future__ import annotations

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
from thalweg.library import saver_builder

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))

import checkpoint_programs  # noqa: E402
import graph_text  # noqa: E402

Node = list[Any]

#: attributes that only TensorFlow 2 writes
TF2_ATTRIBUTES = ("_has_manual_control_dependencies", "debug_name")

#: nodes of TensorFlow 2.21 that TensorFlow 1.15 and thalweg don't make, and why
LEFT_OUT = [
    (r"^save/(Const_\d|StaticRegexFullMatch|Select)", "2.21 chooses the temporary folder for S3 in the graph"),
    (r"^save/StringJoin/inputs_1 =", "1.15's folder has a random name, chosen when the graph is made"),
    (r"/DisableCopyOnRead", "2.21 reads without a copy; here the planner sees to it"),
]

#: what is written otherwise: pattern, replacement
OTHERWISE = [
    (r"StringJoin\(save/Const, save/Select\) {N=2} /device:CPU:\*$", "StringJoin(save/Const, save/StringJoin/inputs_1) {N=2}"),
]


def _default_of(op: str, attribute: str) -> Any:
    attr = registry.lookup(op).definition.attr_by_name.get(attribute)
    if attr is None or attr.default is REQUIRED:
        return None
    return graphdef.attr_to_proto(attr.type, attr.default)


def _text(node: Node) -> str:
    name, op, inputs, device, attrs = node
    data = [i for i in inputs if not i.startswith("^")] + sorted(i for i in inputs if i.startswith("^"))
    shown = ", ".join(f"{k}={v}" for k, v in sorted(attrs.items()) if k not in TF2_ATTRIBUTES)
    text = f"{name} = {op}({', '.join(data)}) {{{shown}}} {device}".rstrip()
    for pattern, replacement in OTHERWISE:
        text = re.sub(pattern, replacement, text)
    return text


def _kept(nodes: list[Node]) -> list[str]:
    return [t for n in nodes if not any(re.search(p, t := _text(n)) for p, _ in LEFT_OUT)]


RECORDED: dict[str, Any] = json.loads((GOLDEN / "data/files/checkpoints/graphs.json").read_text())
graph_text.expand(RECORDED)


class _WithBuilder:
    """tf, and the base class of builders, which TensorFlow keeps out of the public names."""

    BaseSaverBuilder = saver_builder.BaseSaverBuilder

    def __getattr__(self, name: str) -> Any:
        return getattr(tf, name)


@pytest.mark.parametrize("name", checkpoint_programs.PROGRAMS)
def test_graph(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN.parent.parent)
    with tf.Graph().as_default() as graph:
        checkpoint_programs.PROGRAMS[name](_WithBuilder())
        built = graph_text.nodes(graph.as_graph_def(), _default_of, proto_to_array)
    assert _kept(built) == _kept(RECORDED[name]["nodes"])
