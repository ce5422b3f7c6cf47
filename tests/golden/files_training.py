"""A training that one of TensorFlow and thalweg starts and the other one ends. See check_files.py."""

from __future__ import annotations

from typing import Any

from google.protobuf import text_format

LOSS = 1e-5  # rounding


def losses(tf: Any, folder: str, last_step: int) -> list[float]:
    """The losses of a training under a MonitoredTrainingSession: from the folder's checkpoint to a step."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        with tf.variable_scope("model", use_resource=True):
            w = tf.get_variable("w", [3, 2], initializer=tf.random_uniform_initializer(seed=3))
            b = tf.get_variable("b", [2], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(tf.square(tf.matmul([[1.0, 2.0, 3.0]], w) + b - [3.0, 5.0]), name="loss")
        tf.summary.scalar("loss", loss)
        train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
        found = []
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder, save_checkpoint_steps=2, save_summaries_steps=1, hooks=[tf.train.StopAtStepHook(last_step=last_step)]
        ) as session:
            while not session.should_stop():
                found.append(float(session.run([loss, train])[0]))
    tf.summary.FileWriterCache.clear()
    return found


def write(tf: Any, folder: str) -> None:
    """The first five steps."""
    losses(tf, folder, 5)


def loss_of_meta_graph(tf: Any, folder: str) -> float:
    """The loss after step 5, by the graph that was saved with it; graph.pbtxt is imported beside it."""
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{folder}/model.ckpt-5.meta")
        saver.restore(session, f"{folder}/model.ckpt-5")
        loss = float(session.run("loss:0"))
    graph = tf.GraphDef()
    with open(f"{folder}/graph.pbtxt") as f:
        text_format.Parse(f.read(), graph)
    with tf.Graph().as_default():
        tf.import_graph_def(graph, name="")
    return loss


def check(tf: Any, folder: str, other: str) -> str:
    """The steps after those, from the same checkpoint, and from one of TensorFlow's own."""
    losses(tf, other, 5)
    imported, own = [loss_of_meta_graph(tf, f) for f in (folder, other)]
    assert abs(imported - own) < LOSS, (imported, own)
    resumed, undisturbed = losses(tf, folder, 12), losses(tf, other, 12)
    assert len(resumed) == len(undisturbed) == 7, (resumed, undisturbed)
    worst = max(abs(a - b) for a, b in zip(resumed, undisturbed, strict=True))
    assert worst < LOSS, (resumed, undisturbed)
    return f"training: TensorFlow went on from thalweg's checkpoint of step 5 for 7 steps; losses differ by {worst:.1e}"
