"""Adding up the gradients that reach one tensor."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.autodiff.nodes import as_slices
from thalweg.base import dtypes
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Tensor


class AggregationMethod:
    """How gradients that reach one tensor are added up."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def aggregate(grads: Sequence[Tensor | IndexedSlices], method: int, name: str) -> Tensor | IndexedSlices:
    """The sum of gradients; sparse ones stay sparse where all are (their rows are concatenated).

    method: AddN needs all at once; the tree adds two at a time, so earlier ones can be freed. name: the
    operation whose output the gradients are of; names the nodes of a tree.
    Errors: ValueError for an unknown method.
    """
    if method not in (
        AggregationMethod.ADD_N,
        AggregationMethod.EXPERIMENTAL_TREE,
        AggregationMethod.EXPERIMENTAL_ACCUMULATE_N,
    ):
        raise ValueError(f"Invalid aggregation_method specified {method}.")
    if len(grads) == 1:
        return grads[0]
    dense = [g for g in grads if isinstance(g, Tensor)]
    if len(dense) < len(grads):
        return _aggregate_slices([as_slices(g, optimize=True) for g in grads])
    graph = dense[0].graph
    if method == AggregationMethod.ADD_N:
        return _add_by_device(graph, dense)
    with graph.name_scope(f"{name}_gradient_sum"):
        total = dense[0]
        for grad in dense[1:]:
            total = emit("AddN", [total, grad])
        return total


def _add_by_device(graph: Graph, grads: Sequence[Tensor]) -> Tensor:
    """Adds up on each device what is there, then the sums: fewer tensors cross."""
    by_device: dict[str, list[Tensor]] = {}
    for grad in grads:
        by_device.setdefault(grad.device, []).append(grad)
    sums = []
    for device in sorted(by_device):
        here = by_device[device]
        with graph.colocate_with(here[0], ignore_existing=True):
            sums.append(here[0] if len(here) == 1 else emit("AddN", here))
    return sums[0] if len(sums) == 1 else emit("AddN", sums)


def _aggregate_slices(grads: Sequence[IndexedSlices]) -> IndexedSlices:
    indices = [g.indices for g in grads]
    if len({i._dtype for i in indices}) > 1:
        indices = [
            i if i._dtype == dtypes.int64 else emit("Cast", i, DstT=dtypes.int64) for i in indices
        ]
    return IndexedSlices(
        emit("ConcatV2", [g.values for g in grads], 0, name="concat"),
        emit("ConcatV2", indices, 0, name="concat"),
        grads[0].dense_shape,
    )
