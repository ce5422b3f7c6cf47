"""The sugar of the library makes the graphs that TensorFlow makes, name by name (recorded: golden/record_sugar.py).

A case is a line of a user's program. Where thalweg means to differ (TensorFlow 1.15 against 2.21, or a fault), the
file of cases says why, in DIFFERENT, and sugar/ours.json has the graph (written by `python test_sugar_graphs.py`).
"""

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thalweg.ops  # noqa: F401  fills the registry
from thalweg.base.errors import UnimplementedError
from thalweg.graph.composite import IndexedSlices, SparseTensor
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import all_records

HERE = Path(__file__).parent
DATA = HERE.parent / "golden" / "data"


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"sugar_{name}", HERE / "sugar" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


inputs, graph_text, namespace = _load("inputs"), _load("graph_text"), _load("namespace")

FAMILIES = [p.stem.removeprefix("cases_") for p in sorted((HERE / "sugar").glob("cases_*.py"))]
CASES = [(family, code) for family in FAMILIES for code in _load(f"cases_{family}").CASES]
RECORDED = {f: json.loads((DATA / f"sugar_{f}.json").read_text()) for f in FAMILIES}
DIFFERENT = {f: _load(f"cases_{f}").DIFFERENT for f in FAMILIES}
OURS_FILE = HERE / "sugar" / "ours.json"
OURS = json.loads(OURS_FILE.read_text()) if OURS_FILE.exists() else {}


def _plain(v: Any) -> Any:
    if hasattr(v, "proto_name"):
        return v.name
    return [_plain(e) for e in v] if isinstance(v, tuple) else v


def node_text(op: Operation) -> str:
    """One operation as text."""
    definition = op._record.definition
    inferred = set(definition.inferred_attrs)
    attrs = {}
    for key, v in op._attrs.items():
        attr = definition.attr_by_name.get(key)
        if key in inferred or (attr is not None and attr.has_default and _same(attr.default, v)):
            continue
        if op.type == "Const" and key == "dtype":
            continue
        attrs[key] = _plain(v)
    names = [t.name for t in op._inputs] + [f"^{c.name}" for c in op.control_inputs]
    return graph_text.node(op.name, op.type, names, attrs)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return np.float32(a) == np.float32(b)
    return type(a) is type(b) and not isinstance(a, np.ndarray) and a == b


def flat(value: Any) -> list[Any]:
    if isinstance(value, list | tuple) and not hasattr(value, "dtype"):
        return [t for v in value for t in flat(v)]
    if isinstance(value, IndexedSlices | SparseTensor):
        return [value.indices, value.values] + ([] if value.dense_shape is None else [value.dense_shape])
    return [] if value is None else [value]


def build(code: str) -> tuple[Graph, Any, dict[Tensor, np.ndarray]]:
    """The graph of a case, its result and what to feed. Called inside the graph."""
    scope: dict[str, Any] = {"tf": namespace.tf, "np": np}
    feeds = {}
    graph = Graph()
    with graph.as_default():
        for name in inputs.used(code):
            kind, shape, fed = inputs.INPUTS[name]
            scope[name] = namespace.tf.placeholder(kind, shape, name=name)
            feeds[scope[name]] = fed
        if code.startswith("r = "):
            exec(code, scope)
            return graph, scope["r"], feeds
        return graph, eval(code, scope), feeds


#: ops that functions of the library build and that no kernel exists for yet: calling them says so
NOT_BUILT = {
    "Cholesky", "Cross", "GuaranteeConst", "HistogramFixedWidth", "Igamma", "ExtractImagePatches",
    "LogUniformCandidateSampler", "LowerBound", "MatrixDeterminant", "MatrixInverse", "MatrixTriangularSolve",
    "ParallelConcat", "RandomGamma", "RandomPoissonV2", "Roll", "SparseFillEmptyRows", "SparseReshape", "SparseSegmentSum",
}  # fmt: skip


def _missing(e: Exception) -> bool:
    """Whether e says that an op is not built, of those that are known not to be."""
    match = re.search(r"the op (\w+) is not built", str(e))
    return isinstance(e, UnimplementedError) and match is not None and match[1] in NOT_BUILT


def test_not_built_ops_are_not_built() -> None:
    assert not NOT_BUILT & set(all_records())


@pytest.mark.parametrize(("family", "code"), CASES, ids=[f"{f}:{c[:60]}" for f, c in CASES])
def test_graph(family: str, code: str) -> None:
    expected = OURS.get(code) if code in DIFFERENT[family] else RECORDED[family][code]
    if expected is None:
        with pytest.raises(UnimplementedError) as unbuilt:
            build(code)
        assert _missing(unbuilt.value), unbuilt.value
        return
    if "error" in expected:
        with pytest.raises(Exception) as caught:
            build(code)
        if _missing(caught.value):
            return
        classes = [c.__name__ for c in type(caught.value).__mro__]
        assert expected["error"] in classes, repr(caught.value)
        return
    try:
        graph, result, feeds = build(code)
    except UnimplementedError as e:
        assert _missing(e), e
        return
    if "plain" in expected:
        assert repr(result) == expected["plain"]
        return
    lines, shown = describe(graph, result, feeds)
    assert "\n".join(lines) == "\n".join(expected["graph"])
    assert shown == expected["result"]


def describe(graph: Graph, result: Any, feeds: dict[Tensor, np.ndarray]) -> tuple[list[str], list[str]]:
    """A graph without its placeholders, and the tensors and operations of a result, as text."""
    names = {t.op.name for t in feeds}
    lines = [graph_text.known_shapes(node_text(op)) for op in graph.get_operations() if op.name not in names]
    shown = [
        f"{t.name} {t.dtype.name} {graph_text.value(_plain(t._shape))}" if isinstance(t, Tensor) else t.name
        for t in flat(result)
    ]
    return lines, shown


def test_differences_are_of_cases() -> None:
    for family, reasons in DIFFERENT.items():
        assert set(reasons) <= set(RECORDED[family])
    assert set(OURS) <= {code for reasons in DIFFERENT.values() for code in reasons}


if __name__ == "__main__":
    ours = {}
    for reasons in DIFFERENT.values():
        for code in reasons:
            try:
                lines, shown = describe(*build(code))
            except UnimplementedError as e:
                assert _missing(e), e
                continue
            ours[code] = {"graph": lines, "result": shown}
    entries = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in ours.items())
    OURS_FILE.write_text("{\n" + entries + "\n}\n")
