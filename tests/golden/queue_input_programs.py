"""More programs for record_queues.py: producers, batches, threads that fill queues, steps in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from queue_run import Run, plain, programs_of

# --- producers and batches --------------------------------------------------------------------------------


def _all(r: Run, fetches: Any, limit: int = 100) -> list[Any]:
    """What running until the input ends gives."""
    r.run([r.tf.global_variables_initializer(), r.tf.local_variables_initializer()])
    coord = r.tf.train.Coordinator()
    threads = r.tf.train.start_queue_runners(r.session, coord)
    got = []
    try:
        while len(got) < limit:
            got.append(plain(r.run(fetches)))
    except r.tf.errors.OutOfRangeError:
        got.append("end")
    coord.request_stop()
    coord.join(threads, stop_grace_period_secs=10)
    return got


def produce_range(r: Run) -> None:
    q = r.tf.train.range_input_producer(5, num_epochs=2, shuffle=False)
    r.notes.append(_all(r, q.dequeue()))


def produce_range_shuffled(r: Run) -> None:
    q = r.tf.train.range_input_producer(10, num_epochs=3, seed=4, capacity=4)
    r.notes.append(_all(r, q.dequeue()))


def produce_strings(r: Run) -> None:
    q = r.tf.train.string_input_producer(["a", "b", "c"], shuffle=False, num_epochs=2, name="files")
    r.notes.append(_all(r, q.dequeue()))
    r.fails(lambda: r.tf.train.string_input_producer([]))


def produce_for_ever(r: Run) -> None:
    q = r.tf.train.input_producer(np.array([[1, 2], [3, 4]], np.int64), shuffle=False, capacity=3)
    r.notes.append(_all(r, q.dequeue(), limit=5))
    unknown = r.tf.placeholder(r.tf.float32, [None, None])
    r.fails(lambda: r.tf.train.input_producer(unknown))


def produce_slices(r: Run) -> None:
    x = r.tf.constant(np.arange(12, dtype=np.float32).reshape(4, 3))
    y = r.tf.constant(["a", "b", "c", "d"])
    pair = r.tf.train.slice_input_producer([x, y], num_epochs=1, shuffle=False)
    r.notes.append([str(t.shape) for t in pair])
    r.notes.append(_all(r, pair))


def limit_epochs(r: Run) -> None:
    x = r.tf.train.limit_epochs(r.tf.constant([1, 2]), num_epochs=2)
    r.run(r.tf.local_variables_initializer())
    for _ in range(3):
        r.note(x)
    r.fails(lambda: r.tf.train.limit_epochs(r.tf.constant(1), num_epochs=0))


def batches(r: Run) -> None:
    x = r.tf.constant(np.arange(10, dtype=np.int32))
    (one,) = r.tf.train.slice_input_producer([x], num_epochs=1, shuffle=False)
    out = r.tf.train.batch([one, one * 2], 4)
    r.notes.append([str(t.shape) for t in out])
    r.notes.append(_all(r, out))


def batches_smaller_last(r: Run) -> None:
    x = r.tf.constant(np.arange(10, dtype=np.int32))
    (one,) = r.tf.train.slice_input_producer([x], num_epochs=1, shuffle=False)
    out = r.tf.train.batch({"x": one, "half": r.tf.cast(one, r.tf.float32) / 2}, 4, allow_smaller_final_batch=True)
    r.notes.append(_all(r, out))


def batches_of_batches(r: Run) -> None:
    x = r.tf.train.limit_epochs(r.tf.constant([[1, 2], [3, 4], [5, 6]]), num_epochs=2)
    out = r.tf.train.batch([x], 2, enqueue_many=True, capacity=4)
    r.notes.append(_all(r, out))


def batches_padded(r: Run) -> None:
    n = r.tf.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    out = r.tf.train.batch([r.tf.range(n)], 3, dynamic_pad=True)
    r.notes.append(_all(r, out))
    r.fails(lambda: r.tf.train.batch([r.tf.range(n)], 3))


def batches_kept(r: Run) -> None:
    x = r.tf.train.limit_epochs(r.tf.constant([1, 2, 3, 4]), num_epochs=2)
    keep = r.tf.constant([True, False, True, True])
    out = r.tf.train.maybe_batch([x], keep, 3, enqueue_many=True)
    r.notes.append(_all(r, out))
    r.fails(lambda: r.tf.train.maybe_batch([x], keep, 3))


def batches_shuffled(r: Run) -> None:
    x = r.tf.constant(np.arange(40, dtype=np.int32))
    (one,) = r.tf.train.slice_input_producer([x], num_epochs=1, shuffle=False)
    out = r.tf.train.shuffle_batch([one], 8, capacity=20, min_after_dequeue=10, seed=3, num_threads=2)
    rows = _all(r, out)
    r.notes.append([len(rows), sorted(v for row in rows[:-1] for v in row[2])])
    r.fails(lambda: r.tf.train.shuffle_batch([one], 8, capacity=10, min_after_dequeue=10))


def batches_joined(r: Run) -> None:
    sources = []
    for start in (0, 100):
        x = r.tf.constant(np.arange(start, start + 6, dtype=np.int32))
        sources.append(r.tf.train.slice_input_producer([x], num_epochs=1, shuffle=False))
    out = r.tf.train.batch_join(sources, 4)
    rows = _all(r, out)
    r.notes.append([len(rows), sorted(v for row in rows[:-1] for v in row[2])])
    shuffled = r.tf.train.shuffle_batch_join(sources, 4, capacity=9, min_after_dequeue=3, seed=1)
    r.notes.append(str(shuffled.shape))


def runner_errors(r: Run) -> None:
    """An error in a thread reaches join."""
    q = r.tf.FIFOQueue(3, r.tf.int32, shapes=[()])
    x = r.tf.placeholder_with_default(np.int32(1), [])
    with r.tf.control_dependencies([r.tf.assert_equal(x, 2)]):
        enqueue = q.enqueue(x)
    runner = r.tf.train.QueueRunner(q, [enqueue])
    coord = r.tf.train.Coordinator()
    threads = runner.create_threads(r.session, coord, start=True)
    try:
        coord.join(threads, stop_grace_period_secs=10)
    except r.tf.errors.InvalidArgumentError:
        r.notes.append("raised by join")
    r.notes.append([coord.should_stop(), coord.joined, len(runner.exceptions_raised)])
    r.note(q.is_closed())
    r.fails(lambda: r.tf.train.QueueRunner(q, []))
    r.fails(lambda: r.tf.train.QueueRunner(q, [enqueue], queue_closed_exception_types=(1,)))


def runner_closes(r: Run) -> None:
    """The last thread whose input has ended closes the queue."""
    source = r.tf.FIFOQueue(9, r.tf.int32, shapes=[()])
    r.run(source.enqueue_many([[1, 2, 3]]))
    r.run(source.close())
    q = r.tf.FIFOQueue(9, r.tf.int32, shapes=[()])
    enqueue = q.enqueue(source.dequeue())
    runner = r.tf.train.QueueRunner(q, [enqueue, enqueue])
    for thread in runner.create_threads(r.session, start=True):
        thread.join()
    r.note(q.is_closed())
    r.notes.append([sorted(int(r.run(q.dequeue())) for _ in range(3)), [t.name for t in ()]])
    r.note(q.dequeue())


def partial_run(r: Run) -> None:
    tf = r.tf
    a, b, c = (tf.placeholder(tf.float32, [], name=n) for n in "abc")
    noise = tf.random_uniform([]) + a
    first, second, third = a + b, (a + b) * c, noise * c
    h = r.session.partial_run_setup([first, second, noise, third], [a, b, c])
    part = r.session.partial_run
    r.notes.append(plain(part(h, first, {a: 1, b: 2})))
    kept = part(h, noise)
    r.notes.append([plain(part(h, second, {c: 10})), bool(np.allclose(part(h, third), kept * 10))])
    for fetch, feeds in ((first, {}), (second, {c: 1})):
        try:
            part(h, fetch, feeds)
        except tf.errors.InvalidArgumentError as e:
            r.notes.append(e.message.split("\n")[-1] and "refused")


PROGRAMS = programs_of(dict(globals()))
