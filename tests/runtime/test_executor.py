"""Running programs: in order, and with kernels that hand back futures."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.base import errors
from thalweg.graph import opdef
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import OpRecord
from thalweg.graph.text import parse
from thalweg.kernel.convention import Kernel, asynchronous, host, stateful
from thalweg.plan.pipeline import PlanOptions, make_plan
from thalweg.runtime.executor import Program
from thalweg.runtime.metadata import StepRecorder
from thalweg.runtime.step import Step
from thalweg.runtime.worker import Worker


@pytest.fixture
def graph() -> Iterator[Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def node(name: str, kernel: Kernel, inputs: list[Tensor], outputs: int = 1) -> Operation:
    """A node of an op that exists in this test only: floats in, floats out."""
    definition = opdef.parse(
        "Test" + name.capitalize(),
        ", ".join(f"x{i}: float" for i in range(len(inputs))),
        ", ".join(f"y{i}: float" for i in range(outputs)),
        is_stateful=True,
    )
    record = OpRecord(definition, lambda c: [None] * outputs, kernel)
    return tf.get_default_graph().add_node(record, inputs, {}, name)


class Later:
    """A kernel whose results come when the test says so."""

    def __init__(self) -> None:
        self.future: Future[Any] = Future()
        self.started = threading.Event()
        self.context: Any = None
        self.inputs: tuple[Any, ...] = ()
        self.kernel = asynchronous(self._start)

    def _start(self, context: Any, *inputs: Any) -> Future[Any]:
        self.context, self.inputs = context, inputs
        self.started.set()
        return self.future

    def give(self, value: float) -> None:
        self.future.set_result(np.float32(value))


def program(fetches: list[Any], targets: list[Operation] = (), feeds: list[Tensor] = ()) -> Program:  # type: ignore[assignment]
    plan = make_plan(tf.get_default_graph(), feeds, fetches, targets, PlanOptions(check=True))
    return Program(plan, len(feeds), len(fetches), Worker())


class Running(threading.Thread):
    """A step in a thread of its own."""

    def __init__(self, what: Program, feeds: list[Any] = (), step: Step | None = None) -> None:  # type: ignore[assignment]
        super().__init__(daemon=True)
        self.program, self.feeds, self.step = what, feeds, step or Step(timeout_ms=20_000)
        self.result: Any = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.program.run(self.feeds, self.step)
        except BaseException as e:
            self.error = e

    def outcome(self) -> Any:
        self.join(10)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self.result


def test_a_result_that_comes_later(graph: Graph) -> None:
    a, b = Later(), Later()
    x = tf.placeholder(tf.float32, [])
    y = node("a", a.kernel, [x * 2.0]).outputs[0] + node("b", b.kernel, []).outputs[0]
    running = Running(program([y], feeds=[x]), [np.float32(3.0)])
    assert a.started.wait(5) and b.started.wait(5), "both are under way at once"
    assert a.inputs == (np.float32(6.0),) and isinstance(a.inputs[0], np.ndarray)
    b.give(1.0)
    a.give(10.0)
    assert running.outcome() == [11.0]


def test_a_result_that_is_there_at_once(graph: Graph) -> None:
    a = Later()
    a.give(4.0)
    assert Running(program([node("a", a.kernel, []).outputs[0]])).outcome() == [4.0]


def test_control_edges_hold_back_asynchronous_kernels(graph: Graph) -> None:
    first, second = Later(), Later()
    one = node("first", first.kernel, [])
    with tf.control_dependencies([one]):
        two = node("second", second.kernel, [])
    running = Running(program([two.outputs[0]]))
    assert first.started.wait(5)
    assert not second.started.is_set()
    second.give(2.0)
    first.give(1.0)
    assert running.outcome() == [2.0]


def test_what_uses_a_constant_waits_for_what_the_constant_waits_for(graph: Graph) -> None:
    first, second = Later(), Later()
    one = node("first", first.kernel, [])
    with tf.control_dependencies([one]):
        c = tf.constant(5.0)
    with tf.control_dependencies([c]):
        d = tf.constant(6.0)
    two = node("second", second.kernel, [d])
    running = Running(program([two.outputs[0]]))
    assert first.started.wait(5)
    assert not second.started.is_set()
    first.give(1.0)
    second.give(2.0)
    assert running.outcome() == [2.0]
    assert second.inputs == (np.float32(6.0),)


def test_an_error_ends_the_step_and_cancels_what_is_under_way(graph: Graph) -> None:
    bad, other = Later(), Later()
    cancelled = threading.Event()
    y = node("bad", bad.kernel, []).outputs[0] + node("other", other.kernel, []).outputs[0]
    running = Running(program([y]))
    assert bad.started.wait(5) and other.started.wait(5)
    other.context.step.on_cancel(cancelled.set)
    bad.future.set_exception(errors.DataLossError(None, None, "broken"))
    with pytest.raises(errors.DataLossError, match="broken"):
        running.outcome()
    assert other.future.cancelled() and cancelled.is_set()


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ValueError("no"), errors.InvalidArgumentError),
        (IndexError("no"), errors.InvalidArgumentError),
        (NotImplementedError("no"), errors.UnimplementedError),
        (MemoryError("no"), errors.ResourceExhaustedError),
        (KeyError("no"), errors.InternalError),
        (errors.OutOfRangeError(None, None, "no"), errors.OutOfRangeError),
    ],
)
@pytest.mark.parametrize("when", ["starting", "waiting", "host", "stateful"])
def test_what_a_kernel_raises_is_one_of_our_errors(graph: Graph, when: str, raised: Exception, kind: type) -> None:
    def fail(*_: Any) -> Any:
        raise raised

    later = Later()
    later.future.set_exception(raised)
    kernel = {
        "starting": asynchronous(fail),
        "waiting": later.kernel,
        "host": host(fail, foldable=False),
        "stateful": stateful(fail),
    }[when]
    op = node("bad", kernel, [tf.placeholder(tf.float32, [], name="x")])
    with pytest.raises(kind, match="no") as caught:
        program([op.outputs[0]], feeds=list(op.inputs)).run([np.float32(1.0)], Step())
    if kind is not type(raised):
        assert caught.value.op is not None and caught.value.op.name == "bad"
        assert "TestBad 'bad'" in caught.value.message
        assert caught.value.__cause__ is raised


def test_the_deadline_names_what_is_waited_for(graph: Graph) -> None:
    never = Later()
    step = Step(timeout_ms=500)
    running = Running(program([node("never", never.kernel, []).outputs[0]]), step=step)
    with pytest.raises(errors.DeadlineExceededError, match=r"Timed out waiting for TestNever 'never'"):
        running.outcome()
    assert never.future.cancelled() and step.cancelled


def test_cancelling_ends_the_step(graph: Graph) -> None:
    never = Later()
    running = Running(program([node("never", never.kernel, []).outputs[0]]))
    assert never.started.wait(5)
    running.step.cancel(errors.AbortedError(None, None, "a peer went away"))
    with pytest.raises(errors.AbortedError, match="went away"):
        running.outcome()
    assert never.future.cancelled()


def test_a_cancelled_step_does_not_start(graph: Graph) -> None:
    calls: list[int] = []
    a, x = node("a", stateful(lambda context: calls.append(1) or np.float32(1)), []), Later()
    for fetches in ([a.outputs[0]], [a.outputs[0], node("later", x.kernel, []).outputs[0]]):
        step = Step()
        step.cancel()
        with pytest.raises(errors.CancelledError):
            program(fetches).run([], step)
    assert calls == [] and not x.started.is_set()


@pytest.mark.parametrize("wait", [False, True])
def test_values_are_freed_after_their_last_use(graph: Graph, wait: bool) -> None:
    made: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def make(_: Any) -> Any:
        array = np.zeros(10, np.float32)
        made.append(weakref.ref(array))
        return array

    def look(*_: Any) -> Any:
        gc.collect()
        alive.append(sum(ref() is not None for ref in made))
        return np.float32(1)

    x = node("make", host(make, foldable=False), [tf.placeholder(tf.float32, [], name="x")])
    y = node("use", host(lambda x: np.float32(x.sum()), foldable=False), [x.outputs[0]])
    z = node("again", host(lambda x: np.float32(x.sum()), foldable=False), [x.outputs[0]])
    with tf.control_dependencies([y]):
        early = node("early", stateful(look), [])
    z._add_control_input(early)
    with tf.control_dependencies([z]):
        late = node("late", stateful(look), [])
    fetches = [early.outputs[0], late.outputs[0]]
    if wait:
        later = Later()
        later.give(1.0)
        fetches.append(node("later", later.kernel, []).outputs[0])
    made_program = program(fetches, [y, z], list(x.inputs))
    assert made_program.is_async == wait
    made_program.run([np.float32(0)], Step())
    assert alive == [1, 0]


def test_every_node_of_an_asynchronous_step_is_timed(graph: Graph) -> None:
    later = Later()
    y = node("later", later.kernel, []).outputs[0] * tf.placeholder_with_default(2.0, [])
    step = Step()
    made = program([y])
    step.stats = StepRecorder(made.worker)
    later.give(3.0)
    assert made.run([], step) == [6.0]
    stats = tf.RunMetadata().step_stats
    step.stats.fill(stats)
    names = [n.node_name for n in stats.dev_stats[0].node_stats]
    assert names[0] == "later" and len(names) == 2


def test_results_belong_to_the_caller() -> None:
    """Also where a kernel outside clusters hands on what somebody else holds."""
    kept = np.zeros(100_000, np.float32)
    with parse("n = NoOp()").as_default():
        y = node("kept", stateful(lambda context: kept), []).outputs[0]
        once = program([y])
        once.run([], Step())[0][:] = 7.0
        np.testing.assert_array_equal(kept, 0.0)
        twice = program([y, tf.identity(y)])
        first, second = twice.run([], Step())
        first[:] = 7.0
        np.testing.assert_array_equal(second, 0.0)


def test_no_kernel() -> None:
    with parse("n = NoOp()").as_default():
        op = node("none", None, [])  # type: ignore[arg-type]
        with pytest.raises(errors.UnimplementedError, match="no kernel is registered"):
            program([op.outputs[0]])


def test_a_reference_given_to_an_asynchronous_kernel_is_read(graph: Graph) -> None:
    """After what the node waits for, and before what comes after it."""
    later = Later()
    later.give(1.0)
    v = tf.Variable(3.0)
    ref = v.op.outputs[0]
    with tf.control_dependencies([tf.assign_add(v, 1.0)]):
        op = node("later", later.kernel, [ref])
    with tf.control_dependencies([op]):
        after = tf.assign_add(v, 10.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([op.outputs[0], after]) == [1.0, 14.0]
    assert later.inputs == (np.float32(4.0),)
