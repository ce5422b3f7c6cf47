"""Saving and restoring 200 variables, 400 MB, by a Saver; and writing as many bytes to a file with fsync.

The variables have been trained, so that they are where training leaves them. A save ends when the checkpoint
is on the disk (thalweg) or in the system's memory (TensorFlow, which doesn't sync). The three are measured in
turns, since disks have moods; the best of each counts. Removing old files takes time too, and is left out.
"""
import os
import shutil
import tempfile
import time

import numpy as np

COUNT, SHAPE = 200, (1000, 500)
MEGABYTES = COUNT * SHAPE[0] * SHAPE[1] * 4 / 1e6
ROUNDS = 8


def seconds(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def peak_mb():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1e3


def write_and_sync(path, piece):
    with open(path, "wb") as file:
        for _ in range(COUNT):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def run(tf, b):
    folder = tempfile.mkdtemp(prefix="checkpoint-")
    try:
        with tf.Graph().as_default(), tf.Session() as sess:
            measure(tf, b, sess, folder)
    finally:
        shutil.rmtree(folder)


def measure(tf, b, sess, folder):
    variables = [tf.get_variable("v%d" % i, SHAPE, initializer=tf.random_uniform_initializer(seed=i))
                 for i in range(COUNT)]
    train = tf.group(*[v.assign_add(tf.ones(SHAPE)) for v in variables])
    saver = tf.train.Saver(max_to_keep=None)
    piece = np.random.RandomState(0).bytes(SHAPE[0] * SHAPE[1] * 4)
    raw = os.path.join(folder, "raw")
    sess.run(tf.global_variables_initializer())
    sess.run(train)
    before = peak_mb()
    saves, restores, writes = [], [], []
    for i in range(ROUNDS):
        path = os.path.join(folder, "model-%d" % i)
        saves.append(seconds(lambda: saver.save(sess, path, write_meta_graph=False)))
        if i == 0:
            b.report("save_extra_memory_mb", peak_mb() - before, "MB")
        writes.append(seconds(lambda: write_and_sync(raw, piece)))
        os.remove(raw)
        restores.append(seconds(lambda: saver.restore(sess, path)))
        tf.train.remove_checkpoint(path)
    b.report("save_mb_per_s", MEGABYTES / min(saves), "MB/s")
    b.report("restore_mb_per_s", MEGABYTES / min(restores), "MB/s")
    b.report("write_and_sync_mb_per_s", MEGABYTES / min(writes), "MB/s")
    b.report("save_of_write_and_sync", min(writes) / min(saves), "")
