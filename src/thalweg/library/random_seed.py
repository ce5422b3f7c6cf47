"""Seeds of random ops: the graph's seed and the op's."""

from __future__ import annotations

from thalweg.graph.convert import get_default_graph

DEFAULT_GRAPH_SEED = 87654321
_MAXINT32 = 2**31 - 1
_COUNT = "random ops without a seed of their own"


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The attributes (seed, seed2) of a random op about to be made; (None, None): draw them when it runs.

    Where only the graph has a seed, the number of times that this happened in the graph stands in for the
    op's, as in TensorFlow 2.x's compat.v1 (1.15 took the number of nodes so far: docs/differences.md).
    """
    graph = get_default_graph()
    if graph.seed is None and op_seed is None:
        return None, None
    seed = DEFAULT_GRAPH_SEED if graph.seed is None else graph.seed % _MAXINT32
    if op_seed is None:
        op_seed = graph._library_state.get(_COUNT, 0)
        graph._library_state[_COUNT] = op_seed + 1
    seed2 = op_seed % _MAXINT32
    # to the kernels (0, 0) says "draw a seed", which somebody who asked for 0 did not mean
    return (0, _MAXINT32) if (seed, seed2) == (0, 0) else (seed, seed2)


def set_random_seed(seed: int | None) -> None:
    """Sets the default graph's seed: every random op made from here on is reproducible."""
    get_default_graph().seed = seed
