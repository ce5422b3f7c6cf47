"""How good placements are, by simulation: six training graphs on 2, 4 and 8 described devices.

Compared are one device, each device in turn (round robin), consecutive layers by hand (the best of three ways
to weigh work and memory), and Baechi's m-TOPO, m-ETF and m-SCT (each the better of two preparations of the
graph); all are judged by the placer's own simulation. "ample": each device holds the whole step; "limited": a
step doesn't fit on one. And four problems for which the lower bound can be reached.
"""
import math
import time

import placement_problems
from baselines import baechi, simple
from placement_graphs import GRAPHS

from thalweg.plan.placement.critical_path import by_rank, upward_ranks
from thalweg.plan.placement.problem import make_problem
from thalweg.plan.placement.search import best_placement
from thalweg.plan.placement.simulate import simulate

DEVICES = (2, 4, 8)
AMPLE = 1.1  # of the memory that a step takes on one device: what each device holds
LIMITED = {2: 0.7, 4: 0.5, 8: 0.4}
EXPERT = (0.0, 1.0, 1e6)  # how much memory counts beside work
PLACERS = ("one device", "round robin", "by layers", "m-TOPO", "m-ETF", "m-SCT", "thalweg", "bound")


def step_ms(problem, assignment, order):
    """Milliseconds of a simulated step; infinite where it doesn't fit."""
    result = simulate(problem, assignment, order)
    return math.inf if result.overflow(problem) else result.makespan * 1e3


def favourites(problem):
    """Of each preparation of the graph the favourite children. How many devices there are doesn't matter."""
    return [baechi.favourite_children(baechi.coplaced(problem, gradients)) for gradients in (False, True)]


def others(problem, order, favourite):
    """{placer: milliseconds}, the best that each can do."""
    found = {
        "one device": [simple.single(problem)],
        "round robin": [simple.round_robin(problem)],
        "by layers": [simple.expert(problem, memory) for memory in EXPERT],
        "m-TOPO": [], "m-ETF": [], "m-SCT": [],
    }
    for gradients, children in zip((False, True), favourite, strict=True):
        prepared = baechi.coplaced(problem, gradients)
        found["m-TOPO"].append(baechi.m_topo(prepared))
        found["m-ETF"].append(baechi.m_etf(prepared))
        found["m-SCT"].append(baechi.m_sct(prepared, children))
    return {name: min(step_ms(problem, a, order) for a in ways) for name, ways in found.items()}


def compare(b, name, new):
    """Rows of one graph: for each number of devices and each memory."""
    problem = placement_problems.problem(new, placement_problems.accelerators(2))
    order = by_rank(problem, upward_ranks(problem))
    peak = simulate(problem, simple.single(problem), order).peak[0]
    favourite = favourites(problem)
    b.report(f"{name}: nodes", problem.nodes, "count")
    for count in DEVICES:
        for memory, share in (("ample", AMPLE), ("limited", LIMITED[count])):
            problem = placement_problems.problem(new, placement_problems.accelerators(count, share * peak))
            order = by_rank(problem, upward_ranks(problem))
            start = time.process_time()
            choice = best_placement(problem)
            spent = time.process_time() - start
            row = others(problem, order, favourite)
            row["thalweg"] = math.inf if choice.best.overflow else choice.best.result.makespan * 1e3
            row["bound"] = choice.bound * 1e3
            for placer in PLACERS:
                b.report(f"{name}, {count}, {memory}: {placer}", row[placer], "ms")
            b.report(f"{name}, {count}, {memory}: placing", spent, "s")


def tight_problems():
    """(name, problem): work or the longest path bound them, and that bound can be reached."""
    cluster = placement_problems.accelerators(8)
    t, size = 1e-3, 1e3
    chains = [(20 * c + k, 20 * c + k + 1, size) for c in range(64) for k in range(19)]
    yield "64 equal chains", make_problem(cluster, [t] * 1280, chains)
    yield "one chain", make_problem(cluster, [t] * 500, [(k, k + 1, size) for k in range(499)])
    fork = [(0, 1 + 20 * c, size) for c in range(32)]
    fork += [(1 + 20 * c + k, 2 + 20 * c + k, size) for c in range(32) for k in range(19)]
    fork += [(20 + 20 * c, 641, size) for c in range(32)]
    yield "fork and join", make_problem(cluster, [t] * 642, fork)
    grid = [(100 * i + k, 100 * i + k + 1, size) for i in range(8) for k in range(99)]
    grid += [(100 * i + k, 100 * i + 100 + k, size) for i in range(7) for k in range(100)]
    yield "grid of 8 x 100", make_problem(cluster, [t] * 800, grid)


def run(tf, b):
    start = time.process_time()
    for name, make in GRAPHS.items():
        with tf.Graph().as_default() as graph:
            fetches = make(tf)
        compare(b, name, placement_problems.nodes(graph, fetches))
    for name, problem in tight_problems():
        choice = best_placement(problem)
        b.report(f"{name}: thalweg", choice.best.result.makespan * 1e3, "ms")
        b.report(f"{name}: bound", choice.bound * 1e3, "ms")
    b.report("all", time.process_time() - start, "s")
