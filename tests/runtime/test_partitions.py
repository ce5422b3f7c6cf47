"""Steps of several partitions: values, errors, deadlines, closing, threads, and what crossed."""

from __future__ import annotations

import gc
import itertools
import linecache
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.base import errors
from thalweg.graph import opdef
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.registry import OpRecord
from thalweg.kernel.convention import stateful
from thalweg.runtime import partitions
from thalweg.runtime.metadata import bytes_sent
from thalweg.runtime.partitions import PartitionedProgram
from thalweg.runtime.step import Step
from thalweg.runtime.threads import Threads

CPU = "/job:localhost/replica:0/task:0/device:CPU:"


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as made:
        yield made


@pytest.fixture
def sessions() -> Iterator[Callable[..., tf.Session]]:
    """Makes sessions with several CPUs; afterwards they are closed, and none of their threads is left."""
    made: list[tf.Session] = []

    def make(devices: int = 2, **options: Any) -> tf.Session:
        made.append(tf.Session(config=tf.ConfigProto(device_count={"CPU": devices}, **options)))
        return made[-1]

    before = _threads()
    yield make
    for session in made:
        session.close()
    deadline = time.monotonic() + 10
    while _threads() - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _threads() - before


def _threads() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name.startswith("thalweg-step")}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """The steps of several partitions that were run."""
    seen: list[Step] = []
    run = PartitionedProgram.run

    def recorded(self: PartitionedProgram, feeds: Any, step: Step) -> list[Any]:
        seen.append(step)
        return run(self, feeds, step)

    monkeypatch.setattr(PartitionedProgram, "run", recorded)
    return seen


def left_behind(steps: list[Step]) -> int:
    return sum(len(step.rendezvous) for step in steps)


def pause(seconds: float, value: Any = 1.0) -> Any:
    """A value that a thread takes its time for."""
    return tf.py_func(lambda: (time.sleep(seconds), np.float32(value))[1], [], tf.float32)


# ---- values -------------------------------------------------------------------------------------------------


def test_feeds_fetches_variables_and_control_edges(sessions: Any, steps: list[Step]) -> None:
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/cpu:0"):
        v = tf.Variable([1.0, 2.0])
        a = tf.exp(x) + v
    with tf.device("/cpu:1"):
        w = tf.Variable([0.5, 0.5], use_resource=True)
        b = tf.tanh(a) * w
        add = tf.assign_add(w, a)
    with tf.device("/cpu:2"), tf.control_dependencies([add]):
        c = b + a + tf.sin(x)
    with tf.device("/cpu:0"), tf.control_dependencies([c]):
        down = tf.assign_sub(v, [1.0, 1.0])
    session = sessions(3)
    session.run(tf.global_variables_initializer())
    value = np.array([0.1, 0.2], np.float32)
    v0, w0 = np.array([1.0, 2.0]), np.array([0.5, 0.5])
    for _ in range(3):
        a0 = np.exp(value) + v0
        expected = np.tanh(a0) * w0 + a0 + np.sin(value)
        got = session.run([c, down, x], {x: value})
        w0, v0 = w0 + a0, v0 - 1.0
        np.testing.assert_allclose(got[0], expected, rtol=1e-5)
        np.testing.assert_allclose(got[1], v0, rtol=1e-5)
    np.testing.assert_allclose(session.run(w), w0, rtol=1e-5)
    assert steps and left_behind(steps) == 0


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_a_chain_over_all_devices(sessions: Any, devices: int) -> None:
    x = y = tf.placeholder(tf.float64, [])
    for i in range(12):
        with tf.device(f"/cpu:{i % devices}"):
            y = tf.sin(y) + i
    session = sessions(devices)
    expected = 0.7
    for i in range(12):
        expected = np.sin(expected) + i
    assert session.run(y, {x: 0.7}) == pytest.approx(expected, rel=1e-12)


def test_strings_and_large_arrays_cross(sessions: Any) -> None:
    x = tf.placeholder(tf.float32, [None])
    with tf.device("/cpu:0"):
        text = tf.placeholder(tf.string, [2])
        s = tf.reverse(text, [0])
        big = tf.exp(x) * 0.0 + x
    with tf.device("/cpu:1"):
        joined = tf.concat([s, ["!"]], 0)
        total = big * 2.0
    value = np.arange(300_000, dtype=np.float32) % 7
    session = sessions(2)
    for _ in range(2):
        got = session.run([joined, total], {x: value, text: ["a", "bc"]})
        assert list(got[0]) == [b"bc", b"a", b"!"]
        np.testing.assert_array_equal(got[1], value * 2)
        got[1][:] = 0  # it is the caller's


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("size", [3, 100_000])
def test_a_variable_that_is_only_sent(sessions: Any, size: int, use_resource: bool) -> None:
    """What is sent is the value at the time of the read, whatever happens to the variable's buffer."""
    with tf.device("/cpu:0"):
        v = tf.Variable(np.zeros(size, np.float32), use_resource=use_resource, name="v")
        read = v.read_value() if use_resource else tf.identity(v)
        with tf.control_dependencies([read]):
            up = tf.assign_add(v, np.ones(size, np.float32)).op
    with tf.device("/cpu:1"):
        y = tf.reduce_max(read) * 2.0
    with tf.device("/cpu:2"):
        z = tf.reduce_sum(read * 3.0)
    session = sessions(3)
    with pytest.raises(errors.FailedPreconditionError, match="uninitialized value v"):
        session.run(y)
    session.run(v.initializer)
    for i in range(5):
        assert session.run([y, z, up])[:2] == [2.0 * i, 3.0 * i * size]


def test_steps_from_many_threads(sessions: Any, steps: list[Step]) -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.device("/cpu:0"):
        v = tf.Variable(0.0, use_resource=True)
        a = x * 2.0
    with tf.device("/cpu:1"):
        w = tf.Variable(0.0)
        b = tf.sqrt(a * a)
        up = tf.assign_add(w, b)
    with tf.device("/cpu:0"):
        add, c = v.assign_add(b), b + 1.0
    session = sessions(2)
    session.run(tf.global_variables_initializer())
    wrong: list[Any] = []

    def work(n: int) -> None:
        for i in range(40):
            got = session.run([c, add.op if hasattr(add, "op") else add, up.op], {x: float(n + i)})[0]
            if got != 2.0 * (n + i) + 1.0:
                wrong.append((n, i, got))

    threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong
    total = sum(2.0 * (100 * n + i) for n in range(6) for i in range(40))
    assert session.run([v, w]) == [total, total]
    assert left_behind(steps) == 0


def test_queues_in_partitions(sessions: Any) -> None:
    """What waits for a queue holds no thread, and is woken by another step."""
    x = tf.placeholder(tf.float32, [])
    with tf.device("/cpu:1"):
        queue = tf.FIFOQueue(1, [tf.float32], [[]])
        put = queue.enqueue([x * 2.0])
        got = queue.dequeue()
    with tf.device("/cpu:0"):
        y = got + 1.0
    session = sessions(2)
    results: list[Any] = []
    taker = threading.Thread(target=lambda: results.extend(session.run(y) for _ in range(5)), daemon=True)
    taker.start()
    for i in range(5):
        session.run(put, {x: float(i)})
    taker.join(20)
    assert results == [1.0, 3.0, 5.0, 7.0, 9.0]


def test_one_step_puts_and_takes(sessions: Any) -> None:
    """An element crosses by a queue inside one step, in both orders of the partitions."""
    with tf.device("/cpu:1"):
        queue = tf.FIFOQueue(1, [tf.float32], [[]])
        got = queue.dequeue() * 3.0
    with tf.device("/cpu:0"):
        value = pause(0.05, 2.0)
    with tf.device("/cpu:1"):
        put = queue.enqueue([value])
    assert sessions(2).run([got, put])[0] == 6.0


def test_partitions_work_at_the_same_time(sessions: Any) -> None:
    """Two kernels that wait for each other's start, in threads of their own, can only end so."""
    meeting = threading.Barrier(2)

    def meet(context: Any) -> Any:
        meeting.wait(20)
        return np.float32(1.0)

    definition = opdef.parse("TestMeet", "", "y: float", is_stateful=True)
    record = OpRecord(definition, lambda c: [()], stateful(meet))
    parts = []
    for i in range(2):
        with tf.device(f"/cpu:{i}"):
            parts.append(tf.get_default_graph().add_node(record, [], {}, "meet").outputs[0] + 1.0)
    with tf.device("/cpu:0"):
        total = parts[0] + parts[1]
    session = sessions(2)
    assert session.run(total) == 4.0


def test_partial_run(sessions: Any) -> None:
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    with tf.device("/cpu:0"):
        x = a * 2.0
    with tf.device("/cpu:1"):
        y = x + 1.0
        z = y * b
    session = sessions(2)
    for i in range(3):
        handle = session.partial_run_setup([x, y, z], [a, b])
        assert session.partial_run(handle, y, {a: 3.0 + i}) == 7.0 + 2 * i
        assert session.partial_run(handle, [x, z], {b: 10.0}) == [6.0 + 2 * i, 70.0 + 20 * i]


# ---- how a step ends ----------------------------------------------------------------------------------------


def test_the_first_error_ends_all_partitions(sessions: Any, steps: list[Step]) -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.device("/cpu:0"):
        bad = tf.check_numerics(tf.log(x), "it is")
    with tf.device("/cpu:1"):
        queue = tf.FIFOQueue(1, [tf.float32], [[]])
        never = queue.dequeue()
        y = bad + never
    with tf.device("/cpu:2"):
        z = tf.exp(bad) + never
    session = sessions(3)
    for _ in range(3):
        with pytest.raises(errors.InvalidArgumentError, match="it is : Tensor had NaN"):
            session.run([y, z], {x: -1.0})
    assert left_behind(steps) == 0
    with tf.device("/cpu:1"):
        size, put = queue.size(), queue.enqueue([2.0])
    session.run(put)
    assert session.run(size) == 1, "a cancelled dequeue takes nothing"
    assert session.run(y, {x: 1.0}) == 2.0


def test_the_deadline_names_who_waits_for_what(sessions: Any, steps: list[Step]) -> None:
    with tf.device("/cpu:0"):
        queue = tf.FIFOQueue(1, [tf.float32], [[]], name="empty")
        value = queue.dequeue(name="take")
    with tf.device("/cpu:1"):
        y = value * 2.0
        other = tf.FIFOQueue(1, [tf.float32], [[]], name="other").dequeue()
    session = sessions(2)
    for fetches in ([y], [y, other]):
        with pytest.raises(errors.DeadlineExceededError) as caught:
            session.run(fetches, options=tf.RunOptions(timeout_in_ms=200))
        text = caught.value.message
        assert text.startswith("Timed out waiting for queue 'empty' to have")
        assert f"'edge_1_take' from {CPU}0 (_Recv 'take/_2')" in text
        assert caught.value.op.type.startswith("QueueDequeue")
    assert left_behind(steps) == 0
    assert steps[-1].cancelled


def test_closing_ends_steps_under_way(sessions: Any, steps: list[Step]) -> None:
    with tf.device("/cpu:0"):
        value = tf.FIFOQueue(1, [tf.float32], [[]]).dequeue()
    with tf.device("/cpu:1"):
        y = value * 2.0
    session = sessions(2)
    caught: list[BaseException] = []

    def run() -> None:
        try:
            session.run(y)
        except BaseException as e:
            caught.append(e)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(3)]
    for t in threads:
        t.start()
    deadline = time.monotonic() + 10
    while len(steps) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    session.close()
    for t in threads:
        t.join(10)
    assert [type(e) for e in caught] == [errors.CancelledError] * 3
    assert left_behind(steps) == 0


def test_a_message_that_nobody_sends(sessions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a bug loses one, the step says so at once."""
    monkeypatch.setattr(partitions.Rendezvous, "put", lambda self, key, value, op=None: False)
    with tf.device("/cpu:0"):
        a = tf.exp(tf.placeholder_with_default(1.0, []), name="a")
    with tf.device("/cpu:1"):
        b = a + 1.0
    with pytest.raises(errors.InternalError, match="Nothing is left to send what is waited for: 'edge_1_a' from"):
        sessions(2).run(b)


def test_a_message_that_nobody_takes(sessions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put = partitions.Rendezvous.put

    def twice(self: Any, key: str, value: Any, op: Any = None) -> bool:
        put(self, key + "1", value, op)
        return put(self, key, value, op)

    monkeypatch.setattr(partitions.Rendezvous, "put", twice)
    with tf.device("/cpu:0"):
        a = tf.exp(tf.placeholder_with_default(1.0, []))
    with tf.device("/cpu:1"):
        b = a + 1.0
    with pytest.raises(errors.InternalError, match=r"Sent, but never received: .*;0:01"):
        sessions(2).run(b)


class _Interrupt:
    """A trace function that raises KeyboardInterrupt at the n-th line that runs of a file, other than `with`."""

    def __init__(self, path: str, n: int) -> None:
        self.path, self.left = path, n

    def __call__(self, frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != self.path:
            return None
        if event == "line" and not linecache.getline(self.path, frame.f_lineno).lstrip().startswith("with "):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def test_keyboard_interrupt_comes_anywhere(sessions: Any, steps: list[Step]) -> None:
    """Wherever it comes, the step ends with it, leaves nothing behind, and the next one runs."""
    x = y = tf.placeholder(tf.float32, [3])
    for device in (0, 1, 0):
        with tf.device(f"/cpu:{device}"):
            y = tf.exp(y) * 0.5
    session = sessions(2)
    wanted = session.run(y, {x: [1, 2, 3]})
    ended: list[BaseException | None] = []

    def step(n: int) -> None:
        sys.settrace(_Interrupt(partitions.__file__, n))
        try:
            session.run(y, {x: [1, 2, 3]})
        except BaseException as e:
            ended.append(e)
        else:
            ended.append(None)
        finally:
            sys.settrace(None)

    for n in itertools.count(1):
        thread = threading.Thread(target=step, args=(n,), daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive(), f"the step hangs when the interrupt comes at line {n}"
        if ended[-1] is None:
            break
        assert isinstance(ended[-1], KeyboardInterrupt), n
        np.testing.assert_array_equal(session.run(y, {x: [1, 2, 3]}), wanted)
    assert len(ended) > 50 and left_behind([s for s in steps if s.rendezvous is not None]) == 0


def test_an_interrupt_between_a_message_and_who_waits_for_it() -> None:
    rendezvous = partitions.Rendezvous()
    wait = rendezvous.take("key", tf.no_op())
    rendezvous._keys.pop(wait)
    wait.cancel()
    assert wait.done()


def test_of_many_messages_an_error_names_a_few(sessions: Any) -> None:
    def key(i: int) -> dict[str, Any]:
        return {
            "tensor_name": f"t{i}", "send_device": CPU + "0", "send_device_incarnation": 1,
            "recv_device": CPU + "1", "client_terminated": True,
        }  # fmt: skip

    ends = [_ends(key(i)) for i in range(50)]
    with pytest.raises(errors.InternalError, match=r"Nothing is left to send .*'t3' from .*; and 46 more") as e:
        sessions(2).run([recv for _, recv in ends])
    assert len(e.value.message) < 700
    with pytest.raises(errors.InternalError, match=r"Sent, but never received: .* and 46 more") as e:
        sessions(2).run([send for send, _ in ends])
    assert len(e.value.message) < 700


def test_ends_of_different_types(sessions: Any) -> None:
    key = {"tensor_name": "mine", "send_device": CPU + "0", "send_device_incarnation": 1, "recv_device": CPU + "0"}
    send = emit.operation("_Send", tf.constant(3.0), name="send", **key)
    recv = emit("_Recv", tensor_type=tf.int32, name="recv", **key)
    with pytest.raises(errors.InvalidArgumentError, match="'recv' receives int32, but _Send 'send' sends float32"):
        sessions(1).run([recv + 1, send])


def test_a_send_and_a_recv_of_the_program_itself(sessions: Any) -> None:
    key = {"tensor_name": "mine", "send_device": CPU + "0", "send_device_incarnation": 1, "recv_device": CPU + "0"}
    with tf.device("/cpu:0"):
        send, recv = _ends(key)
    session = sessions(1)
    assert session.run([recv * 2.0, send])[0] == 6.0
    with pytest.raises(errors.InvalidArgumentError, match="nothing in this step sends 'mine'"):
        session.run(recv)
    with pytest.raises(errors.InvalidArgumentError, match="nothing in this step receives 'mine'"):
        session.run(send)


def _ends(key: dict[str, Any]) -> tuple[Any, Any]:
    send = emit.operation("_Send", tf.constant(3.0), name="send", **key)
    return send, emit("_Recv", tensor_type=tf.float32, name="recv", **key)


def test_a_malformed_key(sessions: Any) -> None:
    key = {"tensor_name": "a;b", "send_device": "nowhere", "send_device_incarnation": 1, "recv_device": CPU + "0"}
    send, recv = _ends(key)
    with pytest.raises(errors.InvalidArgumentError, match="send_device 'nowhere' is not the full name of a device"):
        sessions(1).run([recv, send])


# ---- what crossed -------------------------------------------------------------------------------------------


def test_each_tensor_crosses_once_for_each_pair_of_devices(sessions: Any) -> None:
    x = tf.placeholder(tf.float32, [100])
    with tf.device("/cpu:0"):
        a = tf.exp(x, name="a")
    ends = []
    for i in (1, 1, 1, 2, 2):
        with tf.device(f"/cpu:{i}"):
            ends.append(tf.reduce_sum(a * float(len(ends) + 1)))
    with tf.device("/cpu:0"):
        total = tf.add_n(ends)
    session = sessions(3)
    metadata = tf.RunMetadata()
    session.run(total, {x: np.zeros(100)}, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), metadata)
    expected = {(CPU + "0", CPU + "1"): 400, (CPU + "0", CPU + "2"): 400}
    back = {(CPU + "1", CPU + "0"): 12, (CPU + "2", CPU + "0"): 8}
    assert bytes_sent(metadata.step_stats) == {**expected, **back}
    pairs = [
        (node.attr["send_device"].s, node.attr["recv_device"].s, node.input[0])
        for graph in metadata.partition_graphs
        for node in graph.node
        if node.op in ("_Send", "_HostSend")
    ]
    assert len(pairs) == len(set(pairs)) == 7


def test_partition_graphs(sessions: Any) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/cpu:0"):
        v = tf.Variable([1.0, 2.0], name="v")
        a = tf.add(tf.exp(x), v, name="a")
    with tf.device("/cpu:1"), tf.control_dependencies([tf.assign_add(v, a)]):
        b = tf.tanh(a * 2.0, name="b")
    session = sessions(2)
    session.run(v.initializer)
    metadata = tf.RunMetadata()
    session.run(b, {x: [0.0, 1.0]}, tf.RunOptions(output_partition_graphs=True), metadata)
    assert [{n.device for n in g.node} for g in metadata.partition_graphs] == [{CPU + "0"}, {CPU + "1"}]
    first, second = ({n.name: n for n in g.node} for g in metadata.partition_graphs)
    sends = [n for n in first.values() if n.op in ("_Send", "_HostSend")]
    assert {n.input[0] for n in sends} >= {"a"}
    recv = next(n for n in second.values() if n.op == "_Recv")
    mul = next(n for n in second.values() if n.op == "Mul")
    assert mul.input[0] == recv.name and mul.attr["_cluster"].s
    assert recv.attr["tensor_name"].s == sends[0].attr["tensor_name"].s
    assert sends[0].attr["send_device_incarnation"].i == session.list_devices()[0].incarnation
    for message in metadata.partition_graphs:
        with Graph().as_default() as loaded:
            tf.import_graph_def(message, name="")
            assert {op.name for op in loaded.get_operations()} == {n.name for n in message.node}


# ---- threads ------------------------------------------------------------------------------------------------


def test_threads_are_reused_and_end() -> None:
    threads = Threads("thalweg-step-test", limit=2)
    done = threading.Semaphore(0)
    seen: set[int] = set()

    def task() -> None:
        seen.add(threading.get_ident())
        done.release()

    for _ in range(20):
        while not threads.submit(task):
            time.sleep(0.001)
        assert done.acquire(timeout=10)
    assert threads.count <= 2 and len(seen) <= 2
    threads.close()
    assert not threads.submit(task)
    deadline = time.monotonic() + 10
    while threads.count and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads.count == 0


def test_threads_end_with_their_pool() -> None:
    threads = Threads("thalweg-step-test")
    done = threading.Event()
    assert threads.submit(done.set) and done.wait(10)
    state = threads._state
    del threads
    gc.collect()
    deadline = time.monotonic() + 10
    while state.count and time.monotonic() < deadline:
        time.sleep(0.01)
    assert state.count == 0


def test_a_step_needs_no_thread_of_the_pool(sessions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Threads, "submit", lambda self, task: False)
    x = y = tf.placeholder(tf.float32, [])
    for i in itertools.islice(itertools.cycle(range(4)), 20):
        with tf.device(f"/cpu:{i}"):
            y = tf.py_func(lambda v: v + np.float32(1), [y], tf.float32) if i == 2 else tf.exp(-y)
    session = sessions(4)
    first = session.run(y, {x: 1.0})
    assert all(session.run(y, {x: 1.0}) == first for _ in range(5))


def test_nothing_holds_a_step_that_has_ended(sessions: Any) -> None:
    x = tf.placeholder(tf.float32, [1000])
    with tf.device("/cpu:0"):
        a = tf.exp(x)
    with tf.device("/cpu:1"):
        b = a * 2.0
    session = sessions(2)
    session.run(b, {x: np.zeros(1000)})
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(20):
            session.run(b, {x: np.zeros(1000)})
        assert len(gc.get_objects()) - before < 100
    finally:
        gc.enable()
