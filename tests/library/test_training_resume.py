"""Training that stops and goes on ends as if it had not stopped; and where thalweg's sessions differ from TensorFlow's."""

from __future__ import annotations

import json
import pathlib
import shutil
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import thalweg as tf

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import files_training  # noqa: E402

STEPS = 20


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with tf.Graph().as_default():
        yield
    tf.summary.FileWriterCache.clear()


def model() -> tuple[Any, Any, Any]:
    """Two layers under Adam with a decaying rate and moving averages: what a step needs beside the weights counts too."""
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [8, 4], "x")
    hidden = tf.nn.relu(tf.matmul(x, tf.get_variable("w", initializer=tf.random_uniform([4, 6], seed=1))))
    loss = tf.reduce_mean(tf.square(tf.matmul(hidden, tf.get_variable("v", initializer=tf.random_uniform([6, 1], seed=2))) - 1.0))
    rate = tf.train.exponential_decay(0.1, step, 5, 0.9)
    train = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
    with tf.control_dependencies([train]):
        average = tf.train.ExponentialMovingAverage(0.9, step)
        train = average.apply(tf.trainable_variables())
    return x, train, step


def batch(step: int) -> np.ndarray:
    return np.random.default_rng(step).normal(size=(8, 4)).astype(np.float32)


class Stopped(Exception):
    """The process is gone."""


def run(folder: pathlib.Path, stop_at: int | None = None, fail_at: int | None = None) -> dict[str, np.ndarray]:
    """Trains up to STEPS; all variables then. stop_at: the process ends in the middle; fail_at: a machine goes away."""
    failures = [tf.errors.AbortedError(None, None, "gone")] if fail_at is not None else []

    class Failing(tf.train.SessionRunHook):
        def after_run(self, run_context: Any, run_values: Any) -> None:
            if failures and run_context.session.run(tf.train.get_global_step()) == fail_at:
                raise failures.pop()

    with tf.Graph().as_default():
        x, train, step = model()
        final = tf.train.FinalOpsHook({v.op.name: v for v in tf.global_variables()})
        hooks = [tf.train.StopAtStepHook(last_step=STEPS), Failing(), final]
        # the data is a function of the step, which only a step function sees before the run
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(folder), save_checkpoint_steps=3, save_summaries_steps=4, hooks=hooks
        ) as session:

            def train_step(step_context: Any) -> None:
                n = step_context.session.run(step)
                if stop_at is not None and n >= stop_at:
                    raise Stopped
                step_context.run_with_hooks(train, {x: batch(n)})

            while not session.should_stop():
                session.run_step_fn(train_step)
        return final.final_ops_values


def test_resumed_training_ends_with_the_same_numbers(tmp_path: pathlib.Path) -> None:
    # the first runs of a step use code that may differ in the last bits: docs/architecture.md, Executables
    run(tmp_path / "compiles")
    whole = run(tmp_path / "whole")
    assert whole["global_step"] == STEPS
    for stop in (2, 7, 8, 15, 19):
        with pytest.raises(Stopped):
            run(tmp_path / "parts", stop_at=stop)
    resumed = run(tmp_path / "parts")
    recovered = run(tmp_path / "recovered", fail_at=11)
    assert set(resumed) == set(recovered) == set(whole)
    for name, value in whole.items():
        np.testing.assert_array_equal(resumed[name], value, err_msg=name)
        np.testing.assert_array_equal(recovered[name], value, err_msg=name)


def test_a_finished_training_makes_no_step(tmp_path: pathlib.Path) -> None:
    run(tmp_path)
    before = {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("model.ckpt-20*")}
    with tf.Graph().as_default():
        _, _, step = model()
        with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), save_checkpoint_secs=None) as session:
            assert session.run_step_fn(lambda step_context: step_context.session.run(step)) == STEPS
    assert {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("model.ckpt-20*")} == before


def test_goes_on_where_tensorflow_stopped(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "training"
    shutil.copytree(GOLDEN / "data" / "files" / "training", folder)
    want = json.loads((folder / "losses.json").read_text())
    np.testing.assert_allclose(files_training.losses(tf, str(folder), 12), want, rtol=1e-5)


def test_a_supervisor_resumes(tmp_path: pathlib.Path) -> None:
    seen = []
    for _ in range(3):
        with tf.Graph().as_default():
            train = tf.assign_add(tf.train.get_or_create_global_step(), 1)
            supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=0, save_summaries_secs=0)
            with supervisor.managed_session() as session:
                for _ in range(2):
                    seen.append(int(session.run(train)))
                supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
    assert seen == [1, 2, 3, 4, 5, 6]


def test_a_step_function_gets_the_new_session() -> None:
    """TensorFlow hands out the old one, which is closed."""
    train = tf.assign_add(tf.train.get_or_create_global_step(), 1)
    sessions: list[Any] = []

    def step(step_context: Any) -> Any:
        sessions.append(step_context.session)
        if len(sessions) == 1:
            raise tf.errors.UnavailableError(None, None, "gone")
        return step_context.session.run(train)

    with tf.train.MonitoredSession() as session:
        assert session.run_step_fn(step) == 1
    assert sessions[0] is not sessions[1]


def test_two_machines_that_go_away_one_after_the_other() -> None:
    """TensorFlow's should_stop raises the second error."""
    train = tf.assign_add(tf.train.get_or_create_global_step(), 1)
    left = [tf.errors.AbortedError(None, None, "a"), tf.errors.UnavailableError(None, None, "u")]

    class Fails(tf.train.SessionRunHook):
        def after_create_session(self, session: Any, coord: Any) -> None:
            if left:
                coord.request_stop(left.pop())

    with tf.train.MonitoredSession(hooks=[Fails()]) as session:
        assert not session.should_stop()
        assert session.run(train) == 1


def test_a_session_whose_hooks_fail_is_closed() -> None:
    """TensorFlow leaves it and its threads alone."""
    tf.Variable(1.0)
    ended = threading.Event()
    made: list[Any] = []

    class Fails(tf.train.SessionRunHook):
        def after_create_session(self, session: Any, coord: Any) -> None:
            made.append(session)
            thread = threading.Thread(target=lambda: (coord.wait_for_stop(), ended.set()))
            coord.register_thread(thread)
            thread.start()
            raise ValueError("from a hook")

    with pytest.raises(ValueError, match="from a hook"):
        tf.train.MonitoredSession(hooks=[Fails()])
    assert ended.is_set()
    with pytest.raises(RuntimeError, match="closed"):
        made[0].run(tf.get_default_graph().get_operations()[0])


def test_the_callers_options_stay_as_they_are() -> None:
    constant = tf.constant(1.0)

    class Traces(tf.train.SessionRunHook):
        def before_run(self, run_context: Any) -> Any:
            return tf.train.SessionRunArgs(None, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE))

    options = tf.RunOptions(timeout_in_ms=30000)
    with tf.train.MonitoredSession(hooks=[Traces()]) as session:
        session.run(constant, options=options)
    assert options == tf.RunOptions(timeout_in_ms=30000)


def test_errors_say_which_variables_have_no_value() -> None:
    v, _ = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="without")
    scaffold = tf.train.Scaffold(init_op=v.initializer)
    with pytest.raises(RuntimeError, match="Variables not initialized: without"):
        tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold))


def test_the_global_step_that_hooks_read_is_made_once() -> None:
    tf.train.get_or_create_global_step()
    hooks = [tf.train.StopAtStepHook(last_step=1), tf.train.StepCounterHook()]
    for hook in hooks:
        hook.begin()
    assert [op.name for op in tf.get_default_graph().get_operations()].count("global_step/add") == 1
