"""Queue programs for record_queues.py and tests/library/test_queue_programs.py. Each takes a `Run`.

A program makes nodes, runs them and notes what comes out: values, and the class and text of errors. The notes and
the names and types of its nodes are compared. What goes through threads is noted in an order that they can't
change.
"""

from __future__ import annotations

import numpy as np
import queue_input_programs
from queue_run import Run, in_thread, plain, programs_of

# --- FIFO -------------------------------------------------------------------------------------------------


def fifo_order(r: Run) -> None:
    q = r.tf.FIFOQueue(5, r.tf.int32)
    for i in range(3):
        r.run(q.enqueue(i))
    r.note(q.size())
    take = q.dequeue()
    for _ in range(3):
        r.note(take)
    r.note(q.size())


def fifo_many(r: Run) -> None:
    q = r.tf.FIFOQueue(10, r.tf.float32, shapes=[[2]])
    r.run(q.enqueue_many([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]))
    r.note(q.dequeue_many(2))
    r.run(q.enqueue([[7.0, 8.0]]))
    r.note(q.dequeue_many(2))
    r.note(q.size())


def fifo_components(r: Run) -> None:
    q = r.tf.FIFOQueue(10, [r.tf.int64, r.tf.string, r.tf.bool], shapes=[(), (), (2,)])
    r.run(q.enqueue([7, "a", [True, False]]))
    r.run(q.enqueue_many([[8, 9], ["b", "c"], [[True, True], [False, False]]]))
    r.note(q.dequeue())
    r.note(q.dequeue_many(2))


def fifo_names(r: Run) -> None:
    q = r.tf.FIFOQueue(10, [r.tf.int32, r.tf.float32], shapes=[(), ()], names=["i", "x"])
    r.run(q.enqueue({"i": 1, "x": 2.0}))
    r.run(q.enqueue_many({"x": [3.0, 4.0], "i": [3, 4]}))
    r.note(q.dequeue())
    r.note(q.dequeue_many(2))
    r.fails(lambda: q.enqueue([1, 2.0]))
    r.fails(lambda: q.enqueue({"i": 1}))


def fifo_shapes_change(r: Run) -> None:
    q = r.tf.FIFOQueue(10, r.tf.int32)
    r.run(q.enqueue([[1, 2]]))
    r.run(q.enqueue(5))
    r.run(q.enqueue_many([np.zeros((2, 1, 2), np.int32)]))
    take = q.dequeue()
    for _ in range(4):
        r.note(take)
    r.note(q.dequeue_many(1))


def fifo_closed_empty(r: Run) -> None:
    q = r.tf.FIFOQueue(3, r.tf.float32, shapes=[()])
    r.note(q.is_closed())
    r.run(q.enqueue(1.0))
    r.run(q.close())
    r.note(q.is_closed())
    r.note(q.dequeue())
    r.note(q.dequeue())
    r.note(q.enqueue(1.0))
    r.note(q.enqueue_many([[1.0]]))
    r.note(q.close())


def fifo_closed_many(r: Run) -> None:
    q = r.tf.FIFOQueue(5, r.tf.int32, shapes=[()])
    r.run(q.enqueue_many([[1, 2, 3]]))
    r.run(q.close())
    r.note(q.dequeue_many(4))
    r.note(q.size())
    r.note(q.dequeue_many(2))
    r.note(q.dequeue_up_to(2))
    r.note(q.dequeue_up_to(2))


def fifo_up_to(r: Run) -> None:
    q = r.tf.FIFOQueue(10, [r.tf.int32, r.tf.string], shapes=[(), ()])
    r.run(q.enqueue_many([[1, 2, 3], ["a", "b", "c"]]))
    r.note(q.dequeue_up_to(2))
    r.run(q.close())
    r.note(q.dequeue_up_to(5))


def fifo_zero_elements(r: Run) -> None:
    q = r.tf.FIFOQueue(5, [r.tf.int32, r.tf.string], shapes=[(2,), ()])
    r.run(q.enqueue_many([np.zeros((0, 2), np.int32), np.zeros((0,), object)]))
    r.note(q.size())
    r.note(q.dequeue_many(0))
    r.note(q.dequeue_up_to(0))


def fifo_unbounded(r: Run) -> None:
    q = r.tf.FIFOQueue(-1, r.tf.int32, shapes=[()])
    r.run(q.enqueue_many([np.arange(100, dtype=np.int32)]))
    r.note(q.size())
    r.note(q.dequeue_many(100))


def fifo_times_out(r: Run) -> None:
    q = r.tf.FIFOQueue(2, r.tf.int32, shapes=[()])
    r.times_out(q.dequeue())
    r.run(q.enqueue_many([[1, 2]]))
    r.times_out(q.enqueue(3))
    r.note(q.size())
    r.note(q.dequeue())
    r.note(q.dequeue())


def fifo_wrong_shape(r: Run) -> None:
    q = r.tf.FIFOQueue(5, r.tf.float32, shapes=[(2,)])
    x = r.tf.placeholder(r.tf.float32)
    put, many = q.enqueue(x), q.enqueue_many(x)
    r.note(put, {x: np.zeros(3)})
    r.note(many, {x: np.zeros((2, 3))})
    r.note(q.size())
    r.fails(lambda: q.enqueue([1.0, 2.0, 3.0]))
    r.fails(lambda: q.enqueue_many([[1.0, 2.0]]))
    r.fails(lambda: q.enqueue("a"))


def fifo_batches_disagree(r: Run) -> None:
    q = r.tf.FIFOQueue(5, [r.tf.float32, r.tf.int32], shapes=[(), ()])
    x, y = r.tf.placeholder(r.tf.float32), r.tf.placeholder(r.tf.int32)
    r.note(q.enqueue_many([x, y]), {x: np.zeros(2), y: np.zeros(3)})
    r.fails(lambda: q.enqueue_many([[1.0, 2.0], [1]]))


def fifo_needs_shapes(r: Run) -> None:
    q = r.tf.FIFOQueue(5, r.tf.float32)
    r.run(q.enqueue(1.0))
    r.note(q.dequeue_many(1))
    r.note(q.dequeue_up_to(1))


def fifo_negative_count(r: Run) -> None:
    q = r.tf.FIFOQueue(5, r.tf.float32, shapes=[()])
    n = r.tf.placeholder(r.tf.int32, [])
    r.note(q.dequeue_many(n), {n: -1})


def fifo_static_shapes(r: Run) -> None:
    q = r.tf.FIFOQueue(5, [r.tf.float32, r.tf.int32], shapes=[(3, 4), ()])
    n = r.tf.placeholder(r.tf.int32, [])
    for outputs in (q.dequeue(), q.dequeue_many(7), q.dequeue_many(n), q.dequeue_up_to(7)):
        r.notes.append([str(t.shape) for t in outputs])
    free = r.tf.FIFOQueue(5, r.tf.float32)
    r.notes.append([str(free.dequeue().shape), free.name, [d.name for d in q.dtypes]])


def fifo_enqueues_wait_in_order(r: Run) -> None:
    q = r.tf.FIFOQueue(2, r.tf.int32, shapes=[()])
    put, take, size = q.enqueue_many([np.arange(7, dtype=np.int32)]), q.dequeue_many(7), q.size()
    thread = in_thread(lambda: r.run(put))
    while r.run(size) < 2:
        pass
    r.note(take)  # more than the queue can hold at once
    thread.join()
    r.note(size)


def fifo_close_waits_for_enqueues(r: Run) -> None:
    q = r.tf.FIFOQueue(1, r.tf.int32, shapes=[()])
    put, take, size, close = q.enqueue_many([[1, 2, 3]]), q.dequeue(), q.size(), q.close()
    putting = in_thread(lambda: r.run(put))
    while r.run(size) < 1:
        pass
    closing = in_thread(lambda: r.run(close))
    for _ in range(3):
        r.note(take)
    putting.join()
    closing.join()
    r.note(take)


def fifo_close_cancels_enqueues(r: Run) -> None:
    q = r.tf.FIFOQueue(1, r.tf.int32, shapes=[()])
    put, take, size = q.enqueue_many([[1, 2, 3]]), q.dequeue(), q.size()
    close = q.close(cancel_pending_enqueues=True)
    errors = []

    def work() -> None:
        try:
            r.run(put)
        except r.tf.errors.CancelledError as e:
            errors.append(r.text_of(e))

    putting = in_thread(work)
    while r.run(size) < 1:
        pass
    r.run(close)
    putting.join()
    r.notes.append(errors)
    r.note(take)
    r.note(take)


def fifo_close_ends_dequeues(r: Run) -> None:
    q = r.tf.FIFOQueue(5, r.tf.int32, shapes=[()])
    take, close = q.dequeue_many(2), q.close()
    errors = []

    def work() -> None:
        try:
            r.run(take)
        except r.tf.errors.OutOfRangeError as e:
            errors.append(type(e).__name__)

    taking = in_thread(work)
    r.run(q.enqueue(1))
    r.run(close)
    taking.join()
    r.notes.append(errors)
    r.note(q.size())


def fifo_shared(r: Run) -> None:
    a = r.tf.FIFOQueue(5, r.tf.int32, shapes=[()], shared_name="shared")
    b = r.tf.FIFOQueue(5, r.tf.int32, shapes=[()], shared_name="shared", name="other")
    r.run(a.enqueue(4))
    r.note(b.size())
    r.note(b.dequeue())


def fifo_shared_wrongly(r: Run) -> None:
    tf = r.tf
    a = tf.FIFOQueue(5, tf.int32, shapes=[()], shared_name="shared")
    r.run(a.size())
    r.note(tf.FIFOQueue(6, tf.int32, shapes=[()], shared_name="shared").size())
    r.note(tf.FIFOQueue(5, tf.float32, shapes=[()], shared_name="shared").size())
    r.note(tf.FIFOQueue(5, tf.int32, shapes=[(2, 3)], shared_name="shared").size())


def fifo_containers(r: Run) -> None:
    a = r.tf.FIFOQueue(5, r.tf.int32, shapes=[()], shared_name="shared")
    with r.tf.container("elsewhere"):
        b = r.tf.FIFOQueue(5, r.tf.int32, shapes=[()], shared_name="shared")
    r.run(a.enqueue(4))
    r.note([a.size(), b.size()])


def fifo_in_a_step(r: Run) -> None:
    """A dequeue that waits for an enqueue of the same step."""
    q = r.tf.FIFOQueue(5, r.tf.int32, shapes=[()])
    r.note([q.dequeue(), q.enqueue(3)])
    take = q.dequeue_many(2)
    r.note([take, q.enqueue(4), q.enqueue(4)])


def fifo_into_arithmetic(r: Run) -> None:
    q = r.tf.FIFOQueue(5, r.tf.float32, shapes=[(2,)])
    v = r.tf.Variable([1.0, 2.0])
    r.run(v.initializer)
    r.run(q.enqueue(v * 3.0))
    x = q.dequeue()
    with r.tf.control_dependencies([q.enqueue(x + 1.0)]):
        y = r.tf.assign_add(v, x)
    r.note(y)
    r.note(q.dequeue())


def fifo_gradient(r: Run) -> None:
    q = r.tf.FIFOQueue(5, r.tf.float32, shapes=[()])
    w = r.tf.Variable(3.0)
    r.run(w.initializer)
    r.run(q.enqueue(5.0))
    x = q.dequeue()
    r.note(r.tf.gradients(x * w * w, [w]))
    r.notes.append(r.tf.gradients(x * w, [x])[0] is not None)


def fifo_old_node(r: Run) -> None:
    """The ops of the first graphs, with reference handles."""
    raw = r.tf.raw_ops
    q = raw.FIFOQueue(component_types=[r.tf.int32], shapes=[()], capacity=4, name="old")
    r.run(raw.QueueEnqueue(handle=q, components=[1]))
    r.run(raw.QueueEnqueueMany(handle=q, components=[[2, 3]]))
    r.note(raw.QueueSize(handle=q))
    r.note(raw.QueueDequeue(handle=q, component_types=[r.tf.int32]))
    r.note(raw.QueueDequeueMany(handle=q, n=1, component_types=[r.tf.int32]))
    r.run(raw.QueueClose(handle=q))
    r.note(raw.QueueDequeueUpTo(handle=q, n=9, component_types=[r.tf.int32]))


def queue_bad_arguments(r: Run) -> None:
    tf = r.tf
    r.fails(lambda: tf.FIFOQueue(5, [tf.int32], shapes=[(None,)]))
    r.fails(lambda: tf.FIFOQueue(5, [tf.int32, tf.int32], shapes=[()]))
    r.fails(lambda: tf.FIFOQueue(5, [tf.int32], names=["a", "b"]))
    r.fails(lambda: tf.PaddingFIFOQueue(5, [tf.int32], shapes=None))
    r.fails(lambda: tf.PaddingFIFOQueue(5, [tf.int32, tf.int32], shapes=[(None,)]))
    r.fails(lambda: tf.QueueBase.from_list(0, []))


# --- shuffling --------------------------------------------------------------------------------------------


def shuffle_seeded(r: Run) -> None:
    q = r.tf.RandomShuffleQueue(30, 0, r.tf.int32, shapes=[()], seed=7)
    r.run(q.enqueue_many([np.arange(20, dtype=np.int32)]))
    r.note(q.dequeue_many(6))
    take = q.dequeue()
    for _ in range(3):
        r.note(take)
    r.run(q.enqueue_many([np.arange(20, 30, dtype=np.int32)]))
    r.note(q.dequeue_many(12))


def shuffle_graph_seed(r: Run) -> None:
    r.tf.set_random_seed(11)
    q = r.tf.RandomShuffleQueue(300, 0, [r.tf.int32, r.tf.string], shapes=[(), ()])
    values = np.arange(300, dtype=np.int32)
    r.run(q.enqueue_many([values, values.astype(str).astype(object)]))
    r.note(q.dequeue_many(290))


def shuffle_keeps_back(r: Run) -> None:
    q = r.tf.RandomShuffleQueue(10, 3, r.tf.int32, shapes=[()], seed=5)
    r.run(q.enqueue_many([[1, 2, 3, 4]]))
    r.note(q.dequeue())
    r.times_out(q.dequeue())
    r.note(q.size())
    r.run(q.close())
    r.note(q.dequeue_many(2))
    r.note(q.dequeue_up_to(5))
    r.note(q.dequeue())


def shuffle_closed_many(r: Run) -> None:
    q = r.tf.RandomShuffleQueue(10, 1, r.tf.int32, shapes=[()], seed=5)
    r.run(q.enqueue_many([[1, 2, 3]]))
    r.run(q.close())
    r.note(q.dequeue_many(4))
    r.note(q.size())


def shuffle_bad(r: Run) -> None:
    q = r.tf.RandomShuffleQueue(3, 5, r.tf.int32, shapes=[()])
    r.note(q.size())
    tf = r.tf
    a = tf.RandomShuffleQueue(9, 2, tf.int32, shapes=[()], shared_name="shared", seed=1)
    r.run(a.size())
    r.note(tf.RandomShuffleQueue(9, 1, tf.int32, shapes=[()], shared_name="shared", seed=1).size())
    r.note(tf.RandomShuffleQueue(9, 2, tf.int32, shapes=[()], shared_name="shared", seed=2).size())


# --- padding and priority ---------------------------------------------------------------------------------


def padding(r: Run) -> None:
    q = r.tf.PaddingFIFOQueue(10, [r.tf.int32, r.tf.string], shapes=[(None, 2), (None,)])
    x = r.tf.placeholder(r.tf.int32, [None, 2])
    s = r.tf.placeholder(r.tf.string, [None])
    put = q.enqueue([x, s])
    for n in (1, 3, 0):
        r.run(put, {x: np.full((n, 2), n), s: ["a"] * n})
    out = q.dequeue_many(3)
    r.note(out)
    r.notes.append([str(t.shape) for t in out])
    r.run(put, {x: np.full((2, 2), 5), s: ["b"]})
    r.note(q.dequeue())


def padding_many(r: Run) -> None:
    q = r.tf.PaddingFIFOQueue(10, r.tf.float32, shapes=[(None, None)])
    r.run(q.enqueue_many([np.ones((2, 1, 3), np.float32)]))
    r.run(q.enqueue_many([np.ones((1, 2, 2), np.float32)]))
    r.run(q.close())
    r.note(q.dequeue_up_to(5))
    r.note(q.dequeue_many(1))
    r.note(q.dequeue_many(0))


def padding_wrong_shape(r: Run) -> None:
    q = r.tf.PaddingFIFOQueue(10, r.tf.float32, shapes=[(None, 3)])
    x = r.tf.placeholder(r.tf.float32)
    r.note(q.enqueue(x), {x: np.zeros((2, 2))})
    r.note(q.enqueue_many(x), {x: np.zeros((2, 2, 2))})


def priority(r: Run) -> None:
    q = r.tf.PriorityQueue(10, r.tf.string, shapes=[()])
    r.run(q.enqueue_many([[5, -1, 3], ["five", "minus", "three"]]))
    r.run(q.enqueue([4, "four"]))
    r.note(q.dequeue())
    r.note(q.dequeue_many(2))
    r.note(q.size())
    r.run(q.close())
    r.note(q.dequeue_many(2))


def priority_alone(r: Run) -> None:
    q = r.tf.PriorityQueue(10, [r.tf.float32, r.tf.int32], shapes=[(2,), ()])
    r.run(q.enqueue_many([[2, 1], [[1.0, 2.0], [3.0, 4.0]], [7, 8]]))
    r.note(q.dequeue())
    r.notes.append([str(t.shape) for t in q.dequeue_many(3)])
    r.fails(lambda: q.enqueue(["a", [1.0, 2.0], 1]))


# --- barriers ---------------------------------------------------------------------------------------------


def barrier(r: Run) -> None:
    b = r.flow.Barrier((r.tf.string, r.tf.int32), shapes=((), ()))
    r.run(b.insert_many(0, ["k1", "k2"], ["a", "b"]))
    r.run(b.insert_many(1, ["k1"], [1]))
    r.note([b.ready_size(), b.incomplete_size()])
    r.run(b.insert_many(0, ["k3"], ["c"]))
    r.run(b.insert_many(1, ["k3"], [3]))
    r.run(b.insert_many(1, ["k2"], [2]))
    take = b.take_many(1)
    first = [r.run(take) for _ in range(3)]
    r.notes.append(sorted(map(str, map(plain, first))))
    r.note([b.ready_size(), b.incomplete_size()])


def barrier_closed(r: Run) -> None:
    b = r.flow.Barrier((r.tf.string, r.tf.int32), shapes=((), ()))
    r.run(b.insert_many(0, ["a"], ["x"]))
    r.run(b.close())
    r.note(b.insert_many(0, ["new"], ["y"]))
    r.run(b.insert_many(1, ["a"], [1]))
    r.note(b.take_many(1))
    r.note(b.insert_many(1, ["a"], [1]))


def barrier_twice(r: Run) -> None:
    b = r.flow.Barrier((r.tf.float32, r.tf.int32), shapes=((2,), ()))
    r.run(b.insert_many(1, ["a"], [1]))
    r.note(b.insert_many(1, ["a"], [2]))
    r.note(b.incomplete_size())
    r.times_out(b.take_many(1))


# --- accumulators -----------------------------------------------------------------------------------------


def accumulator_mean(r: Run) -> None:
    a = r.tf.ConditionalAccumulator(r.tf.float32, shape=(2,), name="acc")
    for i in range(3):
        r.run(a.apply_grad([1.0 * i, 2.0]))
    r.note(a.num_accumulated())
    r.note(a.take_grad(2))
    r.note(a.num_accumulated())
    r.run(a.apply_grad([1.0, 1.0], local_step=0))  # too old now
    r.note(a.num_accumulated())
    r.run(a.apply_grad([1.0, 1.0], local_step=1))
    r.note(a.take_grad(1))


def accumulator_sum(r: Run) -> None:
    a = r.tf.ConditionalAccumulator(r.tf.float64, reduction_type="SUM")
    r.run(a.apply_grad([[1.0], [2.0]]))
    r.run(a.apply_grad([[10.0], [20.0]]))
    r.note(a.apply_grad([1.0, 2.0, 3.0]))
    r.note(a.take_grad(1))


def accumulator_step(r: Run) -> None:
    a = r.tf.ConditionalAccumulator(r.tf.float32, shape=())
    step = r.tf.Variable(5)
    r.run(step.initializer)
    r.run(a.set_global_step(step))
    r.run(a.apply_grad(1.0, local_step=4))
    r.run(a.apply_grad(2.0, local_step=5))
    r.run(a.apply_grad(4.0, local_step=9))
    r.note(a.take_grad(2))
    r.note(a.take_grad(0))
    r.note(a.take_grad(-1))
    r.times_out(a.take_grad(1))


def accumulator_wrong_shape(r: Run) -> None:
    a = r.tf.ConditionalAccumulator(r.tf.float32, shape=(2,))
    x = r.tf.placeholder(r.tf.float32)
    r.note(a.apply_grad(x), {x: np.zeros(3)})
    r.fails(lambda: a.apply_grad([1.0, 2.0, 3.0]))
    r.fails(lambda: a.apply_grad(["a", "b"]))


def sparse_accumulator(r: Run) -> None:
    a = r.tf.SparseConditionalAccumulator(r.tf.float32, shape=(4, 2))
    r.run(a.apply_grad([0, 2], np.ones((2, 2), np.float32), [4, 2]))
    r.run(a.apply_grad([2, 3], np.full((2, 2), 3, np.float32)))
    r.note(a.num_accumulated())
    r.note(a.take_grad(2))
    slices = r.tf.IndexedSlices(np.ones((1, 2), np.float32), np.array([1]), np.array([4, 2]))
    r.run(a.apply_indexed_slices_grad(slices, local_step=1))
    out = a.take_indexed_slices_grad(1)
    r.note([out.indices, out.values, out.dense_shape])


def sparse_accumulator_sum(r: Run) -> None:
    a = r.tf.SparseConditionalAccumulator(r.tf.float32, reduction_type="SUM")
    r.run(a.apply_grad([1, 3], np.ones((2, 2), np.float32)))
    r.run(a.apply_grad([0, 3], np.ones((2, 2), np.float32)))
    r.note(a.take_grad(1))


def sparse_accumulator_wrong(r: Run) -> None:
    a = r.tf.SparseConditionalAccumulator(r.tf.float32, shape=(4, 2))
    ones = lambda *shape: np.ones(shape, np.float32)
    r.note(a.apply_grad([0, 1], ones(1, 2)))
    r.note(a.apply_grad([0], ones(1, 3)))
    r.note(a.apply_grad([0], ones(1, 2), [5, 2]))
    r.note(a.apply_grad([4], ones(1, 2), [4, 2]))
    r.note(a.apply_grad([0], ones(1), [4, 2]))
    r.note(a.num_accumulated())


# --- staging ----------------------------------------------------------------------------------------------


def staging(r: Run) -> None:
    tf = r.tf
    area = r.flow.StagingArea([tf.float32, tf.int32], shapes=[(2,), ()])
    r.run(area.put([tf.constant([1.0, 2.0]), tf.constant(1)]))
    r.run(area.put([tf.constant([3.0, 4.0]), tf.constant(2)]))
    r.note(area.size())
    r.note(area.peek(1))
    got = area.get()
    r.notes.append([str(t.shape) for t in got])
    r.note(got)
    r.run(area.clear())
    r.note(area.size())
    r.fails(lambda: area.put([tf.constant([1.0, 2.0]), tf.constant(1.0)]))
    r.fails(lambda: area.put([tf.constant([1.0]), tf.constant(1)]))


def staging_names(r: Run) -> None:
    tf = r.tf
    area = r.flow.StagingArea([tf.float32, tf.int32], shapes=[(), ()], names=["x", "n"], shared_name="area")
    r.run(area.put({"n": tf.constant(1), "x": tf.constant(2.0)}))
    r.note(area.get())
    r.fails(lambda: area.put([tf.constant(1.0)]))


PROGRAMS = {**programs_of(dict(globals())), **queue_input_programs.PROGRAMS}
