"""Programs that train in sessions with hooks, for record_training_sessions.py and its test. Each takes a `Run`.

They are what users of TensorFlow 1.x write. What a program notes is compared: calls of hooks in their order, global
steps, values, names of files, what is in event files, log lines, classes of errors.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import training_session_more
from training_session_run import Run, programs_of

# --- models -----------------------------------------------------------------------------------------------


def regression(r: Run, summaries: bool = True) -> Any:
    """A line fitted to a point: the loss and the training step. Resource variables: TensorFlow's others race."""
    tf = r.tf
    step = tf.train.get_or_create_global_step()
    with tf.variable_scope("model", use_resource=True):
        w = tf.get_variable("w", [2], initializer=tf.constant_initializer(1.0))
    loss = tf.reduce_sum(tf.square(w - [3.0, 5.0]), name="loss")
    if summaries:
        tf.summary.scalar("loss_summary", loss)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return loss, train


def counting(r: Run) -> Any:
    """A step that only counts."""
    return r.tf.assign_add(r.tf.train.get_or_create_global_step(), 1)


def calls(r: Run, name: str, **actions: Any) -> Any:
    """A hook that notes its calls; actions by method: what else it does."""

    class Calls(r.tf.train.SessionRunHook):
        def begin(self) -> None:
            r.note(name, "begin", r.tf.get_default_graph().finalized)
            self._do("begin")

        def after_create_session(self, session: Any, coord: Any) -> None:
            r.note(name, "after_create_session", r.tf.get_default_graph().finalized, session, coord)
            self._do("after_create_session", session, coord)

        def before_run(self, run_context: Any) -> Any:
            r.note(name, "before_run", run_context.original_args.feed_dict, run_context.stop_requested)
            return self._do("before_run", run_context)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            r.note(name, "after_run", run_values.results)
            self._do("after_run", run_context, run_values)

        def end(self, session: Any) -> None:
            r.note(name, "end", session)
            self._do("end", session)

        def _do(self, method: str, *arguments: Any) -> Any:
            return actions[method](*arguments) if method in actions else None

    return Calls()


# --- loops ------------------------------------------------------------------------------------------------


def loop_without_folder(r: Run) -> None:
    loss, train = regression(r)
    hooks = [r.tf.train.StopAtStepHook(last_step=3), calls(r, "a")]
    with r.tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        while not session.should_stop():
            r.note(session.run([loss, train]))
        r.note(session.should_stop())
    r.files()


def loop_with_checkpoints(r: Run) -> None:
    tf = r.tf
    loss, train = regression(r)
    for last in (5, 7):
        hooks = [tf.train.StopAtStepHook(last_step=last)]
        with tf.train.MonitoredTrainingSession(checkpoint_dir=r.folder, hooks=hooks, save_checkpoint_steps=2, save_summaries_steps=3) as session:
            r.note(session.run(tf.train.get_global_step()) if last == 5 else "resumed")
            while not session.should_stop():
                r.note(session.run([loss, train])[0])
        r.note(tf.train.latest_checkpoint(r.folder).rpartition("/")[2])
        r.files()
        r.note(tf.train.get_checkpoint_state(r.folder).model_checkpoint_path.rpartition("/")[2])
        state = tf.train.get_checkpoint_state(r.folder)
        r.note([p.rpartition("/")[2] for p in state.all_model_checkpoint_paths])


def loop_resumed_in_new_graph(r: Run) -> None:
    tf = r.tf
    for last in (4, 8):
        with tf.Graph().as_default():
            loss, train = regression(r, summaries=False)
            hooks = [tf.train.StopAtStepHook(last_step=last), calls(r, "a")]
            with tf.train.MonitoredTrainingSession(checkpoint_dir=r.folder, hooks=hooks, save_summaries_steps=None) as session:
                while not session.should_stop():
                    r.note(session.run([loss, train])[0])


def events_of_a_loop(r: Run) -> None:
    tf = r.tf
    _, train = regression(r)
    hooks = [tf.train.StopAtStepHook(last_step=7)]
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=r.folder, hooks=hooks, save_checkpoint_steps=3, save_summaries_steps=2, log_step_count_steps=3
    ) as session:
        while not session.should_stop():
            session.run(train)
    tf.summary.FileWriterCache.clear()
    r.events()


def summaries_in_their_own_folder(r: Run) -> None:
    tf = r.tf
    _, train = regression(r)
    with tf.train.MonitoredTrainingSession(
        summary_dir=r.path("summaries"), hooks=[tf.train.StopAtStepHook(num_steps=3)], save_summaries_steps=1
    ) as session:
        while not session.should_stop():
            session.run(train)
    tf.summary.FileWriterCache.clear()
    r.files()
    r.events("summaries")


def no_graph_saved(r: Run) -> None:
    tf = r.tf
    counting(r)
    with tf.train.MonitoredTrainingSession(checkpoint_dir=r.folder, save_graph_def=False) as session:
        session.run(tf.train.get_global_step())
    r.files()


def steps_in_two_ways(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    for options in ({"num_steps": 2}, {"last_step": 1}, {"num_steps": 1, "last_step": 1}, {}):
        with r.noting_error(), tf.train.SingularMonitoredSession(hooks=[tf.train.StopAtStepHook(**options)]) as session:
            while not session.should_stop():
                session.run(train)
            r.note(session.raw_session().run(tf.train.get_global_step()))


def hooks_need_a_global_step(r: Run) -> None:
    tf = r.tf
    v = tf.Variable(1.0)
    for hook in (
        tf.train.StopAtStepHook(last_step=1),
        tf.train.CheckpointSaverHook(r.folder, save_steps=1),
        tf.train.StepCounterHook(),
        tf.train.SummarySaverHook(save_steps=1, summary_op=v),
        tf.train.GlobalStepWaiterHook(1),
    ):
        with r.noting_error():
            tf.train.MonitoredSession(hooks=[hook])


def order_of_hooks(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    with tf.train.MonitoredTrainingSession(
        hooks=[calls(r, "a"), calls(r, "b")], chief_only_hooks=[calls(r, "chief")], checkpoint_dir=r.folder
    ) as session:
        session.run(train)
        session.run(train)


# --- what hooks add ---------------------------------------------------------------------------------------


def hooks_fetch_and_feed(r: Run) -> None:
    tf = r.tf
    x, y = tf.placeholder(tf.float32, [], "x"), tf.placeholder_with_default(10.0, [], "y")
    total = x + y
    args = tf.train.SessionRunArgs
    hooks = [
        calls(r, "dict", before_run=lambda c: args({"t": total, "list": [x, y]})),
        calls(r, "none", before_run=lambda c: None),
        calls(r, "feed", before_run=lambda c: args(None, feed_dict={y: 5.0})),
        tf.train.FeedFnHook(lambda: {x: 1.0}),
    ]
    with tf.train.MonitoredSession(hooks=hooks) as session:
        r.note(session.run(total))
        r.note(session.run([total, {"x": x}]))
        with r.noting_error():
            session.run(total, {x: 3.0})
    with tf.train.MonitoredSession(hooks=[tf.train.FeedFnHook(lambda: {x: 1.0})]) as session:
        r.note(session.run(total, {y: 3.0}))
    with r.noting_error(), tf.train.MonitoredSession(hooks=[tf.train.FeedFnHook(lambda: {x: 1.0}) for _ in range(2)]) as session:
        session.run(total)


def run_options_are_merged(r: Run) -> None:
    tf = r.tf
    c = tf.constant(1.0) + tf.Variable(2.0)
    options = tf.RunOptions(timeout_in_ms=30000)
    seen = []

    class Options(tf.train.SessionRunHook):
        def before_run(self, run_context: Any) -> Any:
            return tf.train.SessionRunArgs(c, options=tf.RunOptions(timeout_in_ms=20000, trace_level=tf.RunOptions.FULL_TRACE))

        def after_run(self, run_context: Any, run_values: Any) -> None:
            seen.append([run_values.options.timeout_in_ms, run_values.options.trace_level])
            seen.append(len(run_values.run_metadata.step_stats.dev_stats) > 0)

    with tf.train.MonitoredSession(hooks=[Options()]) as session:
        metadata = tf.RunMetadata()
        session.run(c, options=options, run_metadata=metadata)
        r.note(seen, len(metadata.step_stats.dev_stats) > 0)


def a_stop_from_a_hook(r: Run) -> None:
    train = counting(r)
    stop = calls(r, "stop", after_run=lambda context, values: context.request_stop())
    with r.tf.train.MonitoredSession(hooks=[stop, calls(r, "after")]) as session:
        r.note(session.should_stop())
        session.run(train)
        r.note(session.should_stop())
        with r.noting_error():
            session.run(train)
    with r.noting_error():
        session.run(train)
    r.note(session.should_stop())
    with r.noting_error():
        session.close()


def the_graph_is_finalized(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    make = calls(r, "make", begin=lambda: tf.constant(1.0, name="made_in_begin"))
    with tf.train.MonitoredSession(hooks=[make]) as session:
        r.note(session.run("made_in_begin:0"))
        r.note(session.graph is tf.get_default_graph(), session.graph.finalized)
        with r.noting_error():
            tf.constant(2.0)
    r.note(tf.get_default_graph().finalized, session.graph is None)
    tf.constant(2.0)
    tf.get_default_graph().finalize()
    with tf.train.MonitoredSession(session_creator=tf.train.ChiefSessionCreator()) as session:
        session.run(train)
    r.note(tf.get_default_graph().finalized)


# --- how it ends ------------------------------------------------------------------------------------------


def ends(r: Run) -> None:
    """Errors that end the block in a good and in a bad way."""
    tf = r.tf
    train = counting(r)
    kinds = [tf.errors.OutOfRangeError(None, None, "input"), StopIteration(), ValueError("v"), KeyboardInterrupt()]
    kinds += [tf.errors.InvalidArgumentError(None, None, "i")]
    for error in kinds:
        try:
            with tf.train.MonitoredSession(hooks=[calls(r, type(error).__name__)]) as session:
                session.run(train)
                raise error
        except BaseException as e:
            r.note("raised", type(e).__name__)
        r.note(session.should_stop())


def errors_in_hooks(r: Run) -> None:
    tf = r.tf
    train = counting(r)

    def fail(*unused: Any) -> None:
        raise ValueError("from a hook")

    for method in ("begin", "after_create_session", "before_run", "after_run", "end"):
        with r.noting_error(), tf.train.MonitoredSession(hooks=[calls(r, "a"), calls(r, method, **{method: fail})]) as session:
            session.run(train)


def errors_of_the_graph(r: Run) -> None:
    tf = r.tf
    x = tf.placeholder(tf.float32, [])
    checked = tf.check_numerics(x, "bad") + tf.Variable(1.0)
    with r.noting_error(), tf.train.MonitoredSession(hooks=[calls(r, "a")]) as session:
        r.note(session.run(checked, {x: 1.0}))
        session.run(checked, {x: np.nan})


# --- recovery ---------------------------------------------------------------------------------------------


def recovery_from_a_checkpoint(r: Run) -> None:
    """A machine that goes away twice: training goes on from the last checkpoint."""
    tf = r.tf
    train = counting(r)
    failures = [tf.errors.AbortedError(None, None, "a"), tf.errors.UnavailableError(None, None, "u")]
    runs = []

    def fail(context: Any, values: Any) -> None:
        runs.append(0)
        if len(runs) in (4, 7):
            raise failures.pop(0)

    hooks = [calls(r, "fails", after_run=fail), tf.train.StopAtStepHook(last_step=6)]
    with tf.train.MonitoredTrainingSession(checkpoint_dir=r.folder, save_checkpoint_steps=2, hooks=hooks) as session:
        while not session.should_stop():
            r.note("step", session.run(train))
    r.note(len(runs))
    r.files()


def recovery_in_a_step_function(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    sessions = []

    def step(step_context: Any) -> Any:
        sessions.append(step_context.session)
        if len(sessions) == 2:
            raise tf.errors.AbortedError(None, None, "a")
        return step_context.run_with_hooks(train)

    with tf.train.MonitoredSession(hooks=[calls(r, "a")]) as session:
        for _ in range(2):
            r.note(session.run_step_fn(step))
    r.note(len(sessions))


def no_recovery_of_one_machine(r: Run) -> None:
    tf = r.tf
    train = counting(r)

    def fail(context: Any) -> None:
        raise tf.errors.AbortedError(None, None, "a")

    with r.noting_error(), tf.train.SingularMonitoredSession(hooks=[calls(r, "a", before_run=fail)]) as session:
        session.run(train)


def recovery_while_a_session_is_made(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    made = []

    class Creator(tf.train.SessionCreator):
        def create_session(self) -> Any:
            made.append(0)
            if len(made) < 3:
                raise tf.errors.UnavailableError(None, None, "u")
            return tf.train.ChiefSessionCreator().create_session()

    with tf.train.MonitoredSession(session_creator=Creator()) as session:
        r.note(session.run(train))
    r.note(len(made))


def report(coord: Any, error: Exception) -> None:
    """As a thread does it, in the handler of an error: TensorFlow wants that."""
    try:
        raise error
    except Exception as e:
        coord.request_stop(e)


def recovery_from_a_thread(r: Run) -> None:
    """A thread reports that a machine went away: the session is made anew; what ends a run for it, too."""
    tf = r.tf
    train = counting(r)
    left = [tf.errors.AbortedError(None, None, "a")]

    def fail(session: Any, coord: Any) -> None:
        if left:
            report(coord, left.pop(0))

    with tf.train.MonitoredSession(hooks=[calls(r, "a", after_create_session=fail)]) as session:
        r.note(session.should_stop())
        r.note(session.should_stop())
        r.note(session.run(train))
        r.note(session.should_stop())


def a_run_fails_of_what_a_thread_reports(r: Run) -> None:
    tf = r.tf
    x = tf.placeholder(tf.float32, [])
    checked = tf.check_numerics(x, "bad")
    values, left = [np.nan, 1.0], [tf.errors.AbortedError(None, None, "a")]

    def fail(session: Any, coord: Any) -> None:
        if left:
            report(coord, left.pop(0))

    feed = tf.train.FeedFnHook(lambda: {x: values.pop(0)})
    with tf.train.MonitoredSession(hooks=[calls(r, "a", after_create_session=fail), feed]) as session:
        r.note(session.run(checked))


def errors_of_threads_at_the_end(r: Run) -> None:
    """What a thread reports is raised at the end, unless it is that a machine went away."""
    tf = r.tf
    train = counting(r)
    errors = [ValueError("v"), tf.errors.AbortedError(None, None, "a"), tf.errors.OutOfRangeError(None, None, "o")]
    coord: list[Any] = []
    while errors:
        fail = calls(r, "a", end=lambda session: report(coord.pop(), errors.pop()))
        with r.noting_error(), tf.train.MonitoredSession(hooks=[fail]) as session:
            coord.append(session._coordinated_creator.coord)
            r.note(session._sess._sess._sess._sess is session._tf_sess(), session._coordinated_creator.tf_sess)
            r.note(session.run(train))


def nested_sessions(r: Run) -> None:
    """A session for evaluation inside the one that trains, from the checkpoint of that."""
    tf = r.tf
    train = counting(r)
    with tf.train.MonitoredTrainingSession(checkpoint_dir=r.folder, save_checkpoint_steps=1, save_summaries_steps=None) as session:
        for _ in range(3):
            session.run(train)
            with tf.Graph().as_default():
                step = tf.train.get_or_create_global_step()
                with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(checkpoint_dir=r.folder)) as evaluation:
                    r.note(evaluation.run(step))
    r.note(tf.get_default_session() is None)


# --- step functions ---------------------------------------------------------------------------------------


def step_functions(r: Run) -> None:
    tf = r.tf
    train = counting(r)

    def without_hooks(step_context: Any) -> Any:
        return step_context.session.run(train)

    def with_hooks(step_context: Any) -> Any:
        step_context.session.run(train)
        return step_context.run_with_hooks(fetches=train)

    def stop(step_context: Any) -> None:
        step_context.request_stop()

    class Steps:
        def step(self, step_context: Any) -> Any:
            return step_context.session.run(train)

    for make in (tf.train.MonitoredSession, tf.train.SingularMonitoredSession):
        with make(hooks=[calls(r, "a")]) as session:
            r.note(session.run_step_fn(without_hooks))
            r.note(session.run_step_fn(with_hooks))
            r.note(session.run_step_fn(Steps().step))
            with r.noting_error():
                session.run_step_fn(lambda x: x)
            with r.noting_error():
                session.run_step_fn(lambda step_context, y: y)
            session.run_step_fn(stop)
            r.note("not reached")
        r.note(session.should_stop())


# --- threads ----------------------------------------------------------------------------------------------


def queue_runners(r: Run) -> None:
    tf = r.tf
    numbers = tf.train.range_input_producer(3, num_epochs=2, shuffle=False).dequeue()
    seen = []
    with tf.train.MonitoredSession(hooks=[calls(r, "a")]) as session:
        while not session.should_stop():
            seen.append(int(session.run(numbers)))
    r.note(seen)


def a_queue_runner_fails(r: Run) -> None:
    tf = r.tf
    queue = tf.FIFOQueue(5, tf.int32, shapes=[()])
    bad = queue.enqueue(tf.cast(tf.check_numerics(tf.log(tf.Variable(-1.0)), "bad"), tf.int32))
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [bad]))
    take = queue.dequeue()
    with r.noting_error(), tf.train.MonitoredSession() as session:
        session.run(take)


def threads_are_joined(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    events = []

    def work(coord: Any) -> None:
        coord.wait_for_stop()
        time.sleep(0.1)
        events.append("thread ends")

    def start(session: Any, coord: Any) -> None:
        thread = threading.Thread(target=work, args=(coord,))
        coord.register_thread(thread)
        thread.start()

    with tf.train.MonitoredSession(hooks=[calls(r, "a", after_create_session=start)]) as session:
        session.run(train)
    r.note(events)


def a_thread_fails(r: Run) -> None:
    tf = r.tf
    train = counting(r)

    def start(session: Any, coord: Any) -> None:
        def work() -> None:
            with coord.stop_on_exception():
                raise KeyError("in a thread")

        thread = threading.Thread(target=work)
        coord.register_thread(thread)
        thread.start()
        thread.join()

    with r.noting_error(), tf.train.MonitoredSession(hooks=[calls(r, "a", after_create_session=start)]) as session:
        while not session.should_stop():
            session.run(train)
        r.note("left the loop")


PROGRAMS = {**programs_of(globals()), **training_session_more.PROGRAMS}
