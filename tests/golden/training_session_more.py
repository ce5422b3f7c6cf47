"""More programs for record_training_sessions.py: hooks of all kinds, scaffolds, the Supervisor, event files."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import numpy as np
from training_session_run import Run, programs_of


def counting(r: Run) -> Any:
    """A step that only counts."""
    return r.tf.assign_add(r.tf.train.get_or_create_global_step(), 1)


# --- hooks that tell --------------------------------------------------------------------------------------


def logging_hook(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    x = tf.placeholder(tf.float32, [2], "x")
    half, small = tf.multiply(x, 0.5, "half"), tf.multiply(x, 1e-7, "small")
    tf.split(x, 2, name="parts")
    LoggingTensorHook = tf.train.LoggingTensorHook
    hooks = [
        LoggingTensorHook({"b": half, "a": "small"}, every_n_iter=2),
        LoggingTensorHook([half, "half:0"], every_n_iter=3),
        LoggingTensorHook(["half"], every_n_secs=1000),
        LoggingTensorHook({"h": half}, every_n_iter=2, formatter=lambda values: f"formatted {values['h'].tolist()}"),
    ]
    with r.log(), tf.train.MonitoredSession(hooks=hooks) as session:
        for i in range(5):
            session.run(train, {x: [i, 2]})
    with r.log(), tf.train.MonitoredSession(hooks=[LoggingTensorHook([tf.constant(3, name="three")], at_end=True)]) as session:
        session.run(train)
    for options in ({}, {"every_n_iter": 1, "every_n_secs": 1}, {"every_n_iter": 0}, {"every_n_iter": -1}):
        with r.noting_error():
            LoggingTensorHook([half], **options)
    with tf.Graph().as_default():
        other = tf.constant(1)
    for tensors in (["nothing"], ["parts"], [other]):
        with r.noting_error():
            LoggingTensorHook(tensors, every_n_iter=1).begin()


def nan_hook(r: Run) -> None:
    tf = r.tf
    x = tf.placeholder(tf.float32, [])
    loss = x * tf.Variable(1.0)
    with r.noting_error(), tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(loss)]) as session:
        session.run(loss, {x: 1.0})
        session.run(loss, {x: np.nan})
    with tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(loss, fail_on_nan_loss=False)]) as session:
        session.run(loss, {x: np.nan})
        r.note(session.should_stop())
    r.note(str(tf.train.NanLossDuringTrainingError()), issubclass(tf.train.NanLossDuringTrainingError, RuntimeError))


def final_ops_hook(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    x = tf.placeholder(tf.float32, [])
    hook = tf.train.FinalOpsHook({"step": tf.train.get_global_step(), "x": x + 1}, final_ops_feed_dict={x: 2.0})
    r.note(hook.final_ops_values)
    with tf.train.MonitoredSession(hooks=[hook, tf.train.FinalOpsHook(None)]) as session:
        session.run(train)
    r.note(hook.final_ops_values)
    queue = tf.FIFOQueue(1, tf.int32, shapes=[()])
    take, close = queue.dequeue(), queue.close()
    with r.noting_error(), tf.train.MonitoredSession(hooks=[tf.train.FinalOpsHook(take)]) as session:
        session.run(close)


def waiter_hook(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    for wait in (0, -1):
        with tf.train.MonitoredSession(hooks=[tf.train.GlobalStepWaiterHook(wait)]) as session:
            r.note(session.run(train))

    def count(session: Any, coord: Any) -> None:
        session.run(train)
        session.run(train)

    class Count(tf.train.SessionRunHook):
        def after_create_session(self, session: Any, coord: Any) -> None:
            count(session, coord)

    with tf.train.MonitoredSession(hooks=[Count(), tf.train.GlobalStepWaiterHook(2)]) as session:
        r.note(session.run(train))


def timers(r: Run) -> None:
    timer = r.tf.train.SecondOrStepTimer(every_steps=3)
    r.note(timer.last_triggered_step())
    r.note([timer.should_trigger_for_step(s) for s in (0, 5)])
    r.note(timer.update_last_triggered_step(2))
    r.note([timer.should_trigger_for_step(s) for s in (0, 2, 3, 4, 5, 6)])
    seconds, steps = timer.update_last_triggered_step(7)
    r.note(seconds is not None, steps, timer.last_triggered_step())
    timer.reset()
    r.note(timer.should_trigger_for_step(7))
    timer = r.tf.train.SecondOrStepTimer(every_secs=1000)
    timer.update_last_triggered_step(1)
    r.note([timer.should_trigger_for_step(s) for s in (1, 2, 100)])
    for options in ({}, {"every_secs": 1, "every_steps": 1}):
        with r.noting_error():
            r.tf.train.SecondOrStepTimer(**options)


# --- checkpoints ------------------------------------------------------------------------------------------


def checkpoint_listeners(r: Run) -> None:
    tf = r.tf
    train = counting(r)

    class Listener(tf.train.CheckpointSaverListener):
        def begin(self) -> None:
            r.note("begin")

        def before_save(self, session: Any, global_step_value: int) -> None:
            r.note("before_save", session, global_step_value, sorted(n for n in os.listdir(r.folder) if n.endswith(".index")))

        def after_save(self, session: Any, global_step_value: int) -> Any:
            r.note("after_save", global_step_value, sorted(n for n in os.listdir(r.folder) if n.endswith(".index")))
            return True if global_step_value >= 4 else None

        def end(self, session: Any, global_step_value: int) -> None:
            r.note("end", global_step_value)

    saver = tf.train.CheckpointSaverHook(
        r.folder, save_steps=2, listeners=[Listener()], checkpoint_basename="mine", saver=tf.train.Saver()
    )
    with tf.train.MonitoredSession(hooks=[saver]) as session:
        for _ in range(10):
            if session.should_stop():
                break
            r.note("step", session.run(train))
    with r.noting_error():
        tf.train.CheckpointSaverHook(r.folder, save_steps=1, saver=1, scaffold=2)
    with r.noting_error():
        tf.train.CheckpointSaverHook(r.folder)


def checkpoint_hook_finds_its_saver(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    session_creator = tf.train.ChiefSessionCreator(tf.train.Scaffold(saver=tf.train.Saver()))
    with r.noting_error():
        tf.train.MonitoredSession(session_creator, hooks=[tf.train.CheckpointSaverHook(r.folder, save_steps=1)])
    with tf.Graph().as_default():
        train = counting(r)
        with tf.train.MonitoredSession(hooks=[tf.train.CheckpointSaverHook(r.folder, save_steps=1)]) as session:
            session.run(train)
    r.files()


def a_model_larger_than_the_loop(r: Run) -> None:
    """A run that makes several steps."""
    tf = r.tf
    train = tf.assign_add(tf.train.get_or_create_global_step(), 5)
    hooks = [tf.train.StopAtStepHook(last_step=12)]
    with tf.train.MonitoredTrainingSession(checkpoint_dir=r.folder, save_checkpoint_steps=4, hooks=hooks) as session:
        while not session.should_stop():
            r.note(session.run(train))
    r.note(sorted(n for n in os.listdir(r.folder) if n.endswith(".index")))


def certain_checkpoint(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    hooks = [tf.train.StopAtStepHook(last_step=4)]
    with tf.train.MonitoredTrainingSession(checkpoint_dir=r.folder, save_checkpoint_steps=1, hooks=hooks) as session:
        while not session.should_stop():
            session.run(train)
    with tf.train.SingularMonitoredSession(checkpoint_filename_with_path=r.path("model.ckpt-2")) as session:
        r.note(session.run(train))
    with r.noting_error():
        tf.train.SingularMonitoredSession(checkpoint_filename_with_path=r.path("model.ckpt-2"), checkpoint_dir=r.folder)
    with r.noting_error():
        tf.train.SingularMonitoredSession(checkpoint_filename_with_path=r.path("model.ckpt-99"))


# --- summaries --------------------------------------------------------------------------------------------


def summary_hook(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    x = tf.placeholder_with_default([1.0, 2.0], [2])
    one, two = tf.summary.scalar("one", x[0]), tf.summary.scalar("two", x[1], family="f")
    writer = tf.summary.FileWriter(r.path("w"))
    hooks = [
        tf.train.SummarySaverHook(save_steps=2, summary_writer=writer, summary_op=[one, two]),
        tf.train.SummarySaverHook(save_secs=1000, output_dir=r.path("o"), summary_op=one),
        tf.train.SummarySaverHook(save_steps=1, summary_op=one),
    ]
    with tf.train.MonitoredSession(hooks=hooks) as session:
        for _ in range(5):
            session.run(train)
    writer.close()
    tf.summary.FileWriterCache.clear()
    r.events("w")
    r.events("o")
    for options in ({}, {"scaffold": tf.train.Scaffold(), "summary_op": one}):
        with r.noting_error():
            tf.train.SummarySaverHook(save_steps=1, **options)


def step_counter_hook(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    with r.log(), tf.train.MonitoredSession(hooks=[tf.train.StepCounterHook(every_n_steps=2, output_dir=r.folder)]) as session:
        for _ in range(5):
            session.run(train)
        session.run(tf.train.get_global_step())
        session.run(tf.train.get_global_step())
        session.run(tf.train.get_global_step())
    tf.summary.FileWriterCache.clear()
    r.events()
    for options in ({"every_n_steps": None}, {"every_n_secs": 1}):
        with r.noting_error():
            tf.train.StepCounterHook(**options)


def profiler_hook(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    with tf.train.MonitoredSession(hooks=[tf.train.ProfilerHook(save_steps=2, output_dir=r.folder)]) as session:
        for _ in range(5):
            session.run(train)
    tf.summary.FileWriterCache.clear()
    r.files()
    r.events()
    for name in sorted(os.listdir(r.folder)):
        if name.endswith(".json"):
            with open(r.path(name)) as f:
                r.note(sorted({e["ph"] for e in json.load(f)["traceEvents"]} & {"M", "X"}))


def all_summaries(r: Run) -> None:
    """Event files with every kind of summary, and the names of nodes."""
    tf = r.tf
    x = tf.placeholder(tf.float32, [1, 2, 2, 1], "x")
    with tf.name_scope("scope"):
        tf.summary.scalar("a b:c", x[0, 0, 0, 0])
        tf.summary.histogram("h", x, family="fam")
    tf.summary.image("pictures", x, max_outputs=1)
    tf.summary.image("pictures", x)
    tf.summary.audio("sound", tf.reshape(x, [1, 4]), 8000)
    tf.summary.text("words", tf.constant(["a", "b"]))
    tf.summary.tensor_summary("t", tf.constant([1, 2]), summary_description="d", display_name="shown", family="fam")
    tf.summary.scalar("/elsewhere", 1.0, collections=["mine"])
    merged, mine = tf.summary.merge_all(), tf.summary.merge_all("mine", name="named")
    some = tf.summary.merge([merged, mine], collections=["merged"])
    r.note(tf.summary.merge_all("nothing"), len(tf.get_collection(tf.GraphKeys.SUMMARIES)), len(tf.get_collection("merged")))
    r.note([[op.name, op.type] for op in tf.get_default_graph().get_operations()])
    with tf.summary.FileWriter(r.folder, tf.get_default_graph(), filename_suffix=".my_suffix") as writer, tf.Session() as session:
        for step in range(2):
            writer.add_summary(session.run(some, {x: np.arange(4.0).reshape(1, 2, 2, 1) + step}), step)
    r.files()
    r.events()
    with tf.Session() as session, r.noting_error():
        session.run(tf.summary.merge([tf.summary.scalar("same", 1.0), tf.summary.merge([tf.get_default_graph().get_tensor_by_name("same:0")])]))
    with r.noting_error():
        tf.summary.text("numbers", tf.constant([1]))


def file_writer(r: Run) -> None:
    tf = r.tf
    c = tf.constant(1.0) + tf.Variable(1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        metadata = tf.RunMetadata()
        session.run(c, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
        writer = tf.summary.FileWriter(r.path("a"), session.graph, max_queue=1, flush_secs=1)
    r.note(writer.get_logdir() == r.path("a"))
    writer.add_run_metadata(metadata, "tag", 3)
    with r.noting_error():
        writer.add_run_metadata(metadata, "tag", 4)
    summary = tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=0.5)])
    for step in (np.int64(4), 5, None):
        writer.add_summary(summary, step)
    writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 6)
    writer.add_graph(tf.get_default_graph(), global_step=7)
    writer.add_event(tf.Event(step=8, summary=summary))
    writer.flush()
    for bad in (lambda: writer.add_graph("no graph"), lambda: writer.add_meta_graph("no graph")):
        with r.noting_error():
            bad()
    with r.noting_error():
        writer.add_graph(tf.get_default_graph(), graph_def=tf.get_default_graph())
    writer.add_graph(None, graph_def=tf.get_default_graph().as_graph_def())
    writer.close()
    writer.close()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        writer.add_summary(summary, 9)
    r.note([w.category.__name__ for w in caught if "closed FileWriter" in str(w.message)])
    r.events("a")
    r.note(tf.summary.FileWriterCache.get(r.path("b")) is tf.summary.FileWriterCache.get(r.path("b")))
    tf.summary.FileWriterCache.clear()
    r.events("b")


# --- scaffolds --------------------------------------------------------------------------------------------


def scaffold_parts(r: Run) -> None:
    tf = r.tf
    v = tf.Variable(1.0, name="v")
    local = tf.Variable(v * 2.0, name="local", collections=[tf.GraphKeys.LOCAL_VARIABLES])
    x = tf.placeholder(tf.float32, [])
    made = []
    scaffold = tf.train.Scaffold(
        init_op=tf.assign(v, x), init_feed_dict={x: 5.0}, init_fn=lambda s, session: made.append([s is scaffold, session.run(v)])
    )
    r.note([scaffold.ready_op, scaffold.saver, scaffold.local_init_op, scaffold.summary_op])
    with tf.train.SingularMonitoredSession(scaffold=scaffold) as session:
        r.note(session.run([v, local]))
    r.note(made)
    r.note([scaffold.init_op.name, scaffold.ready_op.name, scaffold.ready_for_local_init_op.name, scaffold.local_init_op.name])
    copy = tf.train.Scaffold(copy_from_scaffold=scaffold, local_init_op=tf.no_op("mine"))
    r.note([copy.init_op.name, copy.local_init_op.name, copy.saver is scaffold.saver])
    with r.noting_error():
        tf.train.Scaffold(copy_from_scaffold=1)


def scaffold_nodes(r: Run) -> None:
    tf = r.tf
    tf.Variable(1.0, name="v")
    tf.Variable(1.0, name="local", collections=[tf.GraphKeys.LOCAL_VARIABLES])
    tf.summary.scalar("s", 1.0)
    tf.train.Scaffold(saver=tf.train.Saver()).finalize()
    r.note([[op.name, op.type] for op in tf.get_default_graph().get_operations() if not op.name.startswith("save/")])
    for key in ("INIT_OP", "READY_OP", "READY_FOR_LOCAL_INIT_OP", "LOCAL_INIT_OP", "SUMMARY_OP", "SAVERS"):
        r.note(len(tf.get_collection(getattr(tf.GraphKeys, key))))


def scaffold_collections(r: Run) -> None:
    tf = r.tf
    v = tf.Variable(1.0)
    tf.add_to_collection(tf.GraphKeys.INIT_OP, tf.assign(v, 7.0))
    with tf.train.MonitoredSession() as session:
        r.note(session.run(v))
    tf.add_to_collection(tf.GraphKeys.INIT_OP, tf.assign(v, 8.0))
    with r.noting_error():
        tf.train.Scaffold().finalize()


def not_initialized(r: Run) -> None:
    tf = r.tf
    v = tf.Variable(1.0, name="v")
    tf.Variable(2.0, name="w")
    for scaffold in (
        tf.train.Scaffold(init_op=v.initializer),
        tf.train.Scaffold(init_op=tf.no_op(), local_init_op=tf.no_op()),
    ):
        with r.noting_error():
            tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold))


def a_worker_waits(r: Run) -> None:
    tf = r.tf
    counting(r)
    with r.noting_error():
        tf.train.MonitoredTrainingSession(is_chief=False, max_wait_secs=1)
    with r.noting_error():
        tf.train.MonitoredSession(tf.train.WorkerSessionCreator(max_wait_secs=0))


def session_manager(r: Run) -> None:
    tf = r.tf
    v, w = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="w")
    report, init = tf.report_uninitialized_variables(), tf.global_variables_initializer()
    saver = tf.train.Saver()
    manager = tf.train.SessionManager(ready_op=report, recovery_wait_secs=1)
    with manager.prepare_session("", init_op=init) as session:
        r.note(session.run([v, w]))
    for options in ({}, {"init_op": v.initializer}, {"init_op": init, "init_fn": lambda s: s.run(v.assign(9.0))}):
        with r.noting_error():
            r.note(manager.prepare_session("", **options).run(v))
    session, recovered = manager.recover_session("", saver=saver, checkpoint_dir=r.folder)
    r.note(recovered)
    session.run(init)
    session.run(v.assign(4.0))
    saver.save(session, r.path("c"), global_step=3)
    session, recovered = manager.recover_session("", saver=saver, checkpoint_dir=r.folder)
    r.note(recovered, session.run(v), [p.rpartition("/")[2] for p in saver.last_checkpoints])
    session, recovered = manager.recover_session("", saver=tf.train.Saver([v]), checkpoint_filename_with_path=r.path("c-3"))
    r.note(recovered)
    with manager.prepare_session("", init_op=init, saver=saver, checkpoint_dir=r.folder) as session:
        r.note(session.run(v))
    with r.noting_error():
        manager.wait_for_session("", max_wait_secs=0)
    with r.noting_error():
        tf.train.SessionManager(ready_for_local_init_op=report)
    local = tf.Variable(v * 10, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    manager = tf.train.SessionManager(
        ready_for_local_init_op=report, local_init_op=local.initializer, ready_op=tf.report_uninitialized_variables()
    )
    r.note(manager.prepare_session("", init_op=init).run(local))
    with r.noting_error():
        manager.prepare_session("", init_op=v.initializer)
    r.note(tf.train.SessionManager(ready_op=tf.assert_variables_initialized()).prepare_session("", init_op=init, init_fn=lambda s: s.run(local.initializer)).run(w))


# --- the Supervisor ---------------------------------------------------------------------------------------


def supervisor_loop(r: Run) -> None:
    tf = r.tf
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    for _ in range(2):
        with tf.Graph().as_default():
            train = tf.assign_add(tf.train.get_or_create_global_step(), 1)
            tf.summary.scalar("s", 2.0)
            supervisor = tf.train.Supervisor(logdir=r.folder, save_summaries_secs=0, save_model_secs=0)
            with supervisor.managed_session() as session:
                for _ in range(3):
                    if supervisor.should_stop():
                        break
                    r.note(session.run(train))
                supervisor.summary_computed(session, session.run(supervisor.summary_op))
                supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
            r.note(supervisor.should_stop(), supervisor.is_chief, supervisor.save_path == r.path("model.ckpt"))
    r.note(sorted(n for n in os.listdir(r.folder) if not n.startswith("events")))
    r.note(tf.train.latest_checkpoint(r.folder).rpartition("/")[2])


def supervisor_events(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    tf.summary.scalar("s", 2.0)
    supervisor = tf.train.Supervisor(logdir=r.folder, save_summaries_secs=0, save_model_secs=0)
    with supervisor.managed_session() as session:
        session.run(train)
        supervisor.summary_computed(session, session.run(supervisor.summary_op))
        supervisor.summary_computed(session, session.run(supervisor.summary_op), global_step=17)
    r.events()


def supervisor_services(r: Run) -> None:
    """The threads save a checkpoint and summaries at once."""
    tf = r.tf
    train = counting(r)
    tf.summary.scalar("s", 2.0)
    supervisor = tf.train.Supervisor(logdir=r.folder, save_summaries_secs=100, save_model_secs=100)
    with supervisor.managed_session() as session:
        while not tf.train.latest_checkpoint(r.folder):
            pass
        session.run(train)
    r.note(sorted(n for n in os.listdir(r.folder) if not n.startswith("events")))
    with open(r.path("checkpoint")) as f:
        r.note(f.read().replace(r.folder, "<folder>"))


def supervisor_without_folder(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    supervisor = tf.train.Supervisor(
        logdir=None, init_fn=lambda session: session.run(tf.get_default_graph().get_operation_by_name("AssignAdd")), summary_op=None, saver=None
    )
    with supervisor.managed_session() as session:
        r.note(session.run(train))
        with r.noting_error():
            tf.constant(1.0)
    with r.noting_error():
        supervisor.summary_computed(None, None)
    with r.noting_error():
        tf.Variable(1.0)
    r.note(supervisor.saver, supervisor.summary_op, supervisor.summary_writer, supervisor.save_path)


def supervisor_errors(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    supervisor = tf.train.Supervisor(logdir=None)
    for error in (ValueError("v"), tf.errors.OutOfRangeError(None, None, "o"), tf.errors.AbortedError(None, None, "a")):
        with r.noting_error(), supervisor.managed_session() as session:
            session.run(train)
            raise error
        r.note(supervisor.should_stop())
    with r.noting_error(), supervisor.managed_session() as session:
        with supervisor.stop_on_exception():
            raise KeyError("k")
        r.note("after", supervisor.should_stop())
    with supervisor.managed_session() as session:
        r.note(supervisor.should_stop())
        supervisor.request_stop()
        r.note(supervisor.should_stop())
    with tf.Graph().as_default():
        counting(r)
        worker = None
        with r.noting_error():
            worker = tf.train.Supervisor(is_chief=False)
        with tf.device("/cpu:0"), tf.Graph().as_default():
            tf.Variable(1.0)


def supervisor_threads(r: Run) -> None:
    tf = r.tf
    numbers = tf.train.range_input_producer(3, num_epochs=1, shuffle=False).dequeue()
    supervisor = tf.train.Supervisor(logdir=None)
    seen, looped = [], []
    with supervisor.managed_session() as session:
        supervisor.loop(0.01, lambda x: looped.append(x), args=[1])
        while not looped:
            pass
        while not supervisor.should_stop():
            seen.append(int(session.run(numbers)))
    r.note(seen, looped[0])


def old_supervisor_names(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    supervisor = tf.train.Supervisor(logdir=r.folder, save_summaries_secs=0, save_model_secs=0)
    session = supervisor.PrepareSession()
    supervisor.StartQueueRunners(session)
    r.note(session.run(train), supervisor.ShouldStop())
    supervisor.RequestStop()
    supervisor.WaitForStop()
    supervisor.Stop()
    r.note(supervisor.ShouldStop())


def train_loop(r: Run) -> None:
    tf = r.tf
    train = counting(r)
    supervisor = tf.train.Supervisor(logdir=r.folder, save_summaries_secs=0, save_model_secs=0)
    seen = []

    def step(session: Any, limit: int, more: int = 0) -> None:
        seen.append(int(session.run(train)))
        supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
        if len(seen) == 3:
            raise tf.errors.AbortedError(None, None, "gone")
        if len(seen) >= limit + more:
            supervisor.request_stop()

    tf.train.basic_train_loop(supervisor, step, args=[4], kwargs={"more": 1})
    r.note(seen)
    with r.noting_error():
        tf.train.basic_train_loop(supervisor, lambda session: session.run(tf.constant(1)))


PROGRAMS = programs_of(globals())
