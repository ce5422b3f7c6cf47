"""Steps that run in parts: feed some, fetch some, feed more. Session.partial_run_setup and partial_run.

Each part is a program of its own. What a part has computed and a later one needs is fetched with it, kept,
and fed to the later one; nodes that have run are cut off from it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from thalweg.base.errors import InvalidArgumentError
from thalweg.client.feeds import Feeder, expand_feeds
from thalweg.client.fetches import FetchPlan
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import ancestors
from thalweg.kernel.convention import Kind
from thalweg.runtime.master import Master
from thalweg.runtime.step import Step


class _Setup:
    """What partial_run_setup was given, and the programs of the parts that were asked for so far."""

    def __init__(self, fetches: list[Tensor], targets: list[Operation], feeds: list[Tensor]) -> None:
        self.fetches = fetches
        self.targets = targets
        self.feeds = feeds
        given = set(feeds)
        roots = [*(t._op for t in fetches if t not in given), *targets]
        self.nodes = ancestors(roots, lambda t: t in given)
        #: by the parts up to here: (feeds, fetches) each
        self.parts: dict[Any, _Part] = {}


class _Part:
    """One part: its program, what it is fed of what was kept, what it keeps, and the nodes that it runs."""

    def __init__(self, program: Any, fed: list[Tensor], keeps: list[Tensor], runs: set[Operation]) -> None:
        self.program = program
        self.fed = fed
        self.keeps = keeps
        self.runs = runs


class _Run:
    """A step under way."""

    def __init__(self, setup: _Setup) -> None:
        self.setup = setup
        self.lock = threading.Lock()
        self.history: tuple[Any, ...] = ()
        self.values: dict[Tensor, Any] = {}
        self.fed: set[Tensor] = set()
        self.fetched: set[Tensor] = set()
        self.done: set[Operation] = set()


class PartialRuns:
    """The partial runs of one session. Thread-safe; the parts of one step run one after the other."""

    def __init__(
        self, graph: Graph, master: Master, run: Callable[[Any, list[Any], Step], list[Any]]
    ) -> None:
        self._graph = graph
        self._master = master
        self._run_program = run
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._setups: dict[Any, _Setup] = {}
        self._runs: dict[str, _Run] = {}

    def start(self, fetches: Any, feeds: Any) -> str:
        """See Session.partial_run_setup."""
        if self._master.closed:
            raise RuntimeError("Attempted to use a closed Session.")
        plan = FetchPlan(self._graph, fetches)
        if not plan.tensors and not plan.targets:
            raise InvalidArgumentError(None, None, "Must specify at least one target to fetch or execute.")
        given = list(expand_feeds(self._graph, dict.fromkeys(feeds or ())))
        key = (tuple(plan.tensors), tuple(plan.targets), tuple(given), self._graph._mutations)
        with self._lock:
            setup = self._setups.get(key)
            if setup is None:
                setup = self._setups[key] = _Setup(plan.tensors, plan.targets, given)
            handle = f"partial_run_{next(self._numbers)}"
            self._runs[handle] = _Run(setup)
        return handle

    def go_on(self, handle: Any, fetches: Any, feed_dict: Any) -> Any:
        """See Session.partial_run."""
        if self._master.closed:
            raise RuntimeError("Attempted to use a closed Session.")
        run = self._runs.get(handle)
        if run is None:
            raise InvalidArgumentError(None, None, "Must run 'setup' before performing partial runs!")
        plan = FetchPlan(self._graph, fetches)
        if plan.targets:
            raise RuntimeError(
                "partial_run() requires empty `target_list`. Received: "
                f"target_list={plan.targets} (non-empty)"
            )
        feeds = expand_feeds(self._graph, feed_dict or {})
        with run.lock:
            self._check(run, list(feeds), plan.tensors)
            values = {t: Feeder(t)(value) for t, value in feeds.items()}
            part = self._part(run, list(feeds), plan.tensors)
            run.values.update(values)
            run.fed.update(feeds)
            try:
                inputs = [run.values[t] for t in part.fed]
                results = self._run_program(part.program, inputs, Step()) if part.program else []
            except BaseException:
                self._runs.pop(handle, None)  # some of its nodes have run: it can't be tried again
                raise
            run.fetched.update(plan.tensors)
            run.done |= part.runs
            run.values.update(zip(part.keeps, results[len(plan.tensors) :], strict=True))
            run.history = (*run.history, (tuple(feeds), tuple(plan.tensors)))
            if len(run.fetched) == len(run.setup.fetches) and len(run.fed) == len(run.setup.feeds):
                self._runs.pop(handle, None)
        return plan.rebuild(results[: len(plan.tensors)])

    def _check(self, run: _Run, feeds: list[Tensor], fetches: list[Tensor]) -> None:
        def bad(text: str) -> InvalidArgumentError:
            return InvalidArgumentError(None, None, text)

        for tensor in feeds:
            if tensor not in run.setup.feeds:
                raise bad(f"The feed {tensor.name} was not specified in partial_run_setup.")
            if tensor in run.fed:
                raise bad(f"The feed {tensor.name} has already been fed.")
        for tensor in fetches:
            if tensor not in run.setup.fetches:
                raise bad(f"The fetch {tensor.name} was not specified in partial_run_setup.")
            if tensor in run.fetched:
                raise bad(f"The fetch {tensor.name} has already been fetched.")
        missing = set(run.setup.feeds) - run.fed - set(feeds)
        for tensor in fetches:
            at_hand = run.values.keys() | set(feeds)
            lacking = missing.intersection(_reached([tensor], [], at_hand, run.done))
            if lacking:
                raise bad(
                    f"Fetch {tensor.name} can't be computed from the feeds that have been fed so far: "
                    f"{', '.join(sorted(t.name for t in lacking))} must be fed too."
                )

    def _part(self, run: _Run, feeds: list[Tensor], fetches: list[Tensor]) -> _Part:
        """The part that computes these fetches next: planned once for the same parts before it."""
        key = (*run.history, (tuple(feeds), tuple(fetches)))
        part = run.setup.parts.get(key)
        if part is None:
            part = run.setup.parts[key] = self._planned(run, [*run.values, *feeds], fetches)
        return part

    def _planned(self, run: _Run, known: list[Tensor], fetches: list[Tensor]) -> _Part:
        at_hand = set(known)
        missing = set(run.setup.feeds) - at_hand
        targets = [
            op
            for op in run.setup.targets
            if op not in run.done and missing.isdisjoint(_reached([], [op], at_hand, run.done))
        ]
        if not fetches and not targets:
            return _Part(None, [], [], set())
        roots = [*(t._op for t in fetches if t not in at_hand), *targets]
        needed = ancestors(roots, lambda t: t in at_hand, run.done)
        runs = {op for op in needed if _runs_once(op)}
        rest = [op for op in run.setup.nodes if op not in run.done and op not in runs]
        wanted = {t for op in rest for t in op._inputs} | (set(run.setup.fetches) - run.fetched)
        keeps = [
            t
            for op in needed
            if op in runs
            for t in op._outputs
            if t in wanted and t not in at_hand and t._dtype.base_dtype.name not in ("resource", "variant")
        ]
        program = self._master.prepare_part(known, [*fetches, *keeps], targets, run.done)
        return _Part(program, known, keeps, runs)


def _reached(
    tensors: list[Tensor], targets: list[Operation], at_hand: Any, done: set[Operation]
) -> list[Tensor]:
    """The tensors that computing these looks at, and that are not at hand."""
    wanted = [t for t in tensors if t not in at_hand]
    nodes = ancestors([*(t._op for t in wanted), *targets], lambda t: t in at_hand, done)
    return [*wanted, *(t for op in nodes for t in op._inputs if t not in at_hand)]


def _runs_once(op: Operation) -> bool:
    """Whether a node may not run again in a later part: all but those that only stand for something."""
    kernel = op._record.kernel
    return kernel is None or kernel.kind is not Kind.SOURCE
