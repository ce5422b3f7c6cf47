"""Records: TFRecord files, Examples, pictures.

iterator        tf_record_iterator over records of 1 KB
read_up_to      the same through TFRecordReader over a queue of file names, 128 at a time
read            one record a step
parse_batch     parse_example of 128 Examples of 20 features (8 floats, 4 integers, a string, any number of
integers) parse_mixed     the same where examples lack features, each in an order of its own parse_single
parse_single_example jpeg, png       decode_jpeg and decode_png of 320 x 240
"""

import os
import tempfile

import numpy as np

RECORDS = 20000
BATCH = 128


def write(tf, path):
    rng = np.random.default_rng(0)
    with tf.python_io.TFRecordWriter(path) as writer:
        for _ in range(RECORDS):
            writer.write(rng.bytes(1000))


def example(tf, rng, mixed):
    train = tf.train
    features = []
    for k in range(6):
        features.append(("float_%d" % k, train.Feature(float_list=train.FloatList(value=rng.random(8)))))
    for k in range(6):
        values = rng.integers(0, 100000, 4)
        features.append(("int_%d" % k, train.Feature(int64_list=train.Int64List(value=values))))
    for k in range(4):
        features.append(("bytes_%d" % k, train.Feature(bytes_list=train.BytesList(value=[rng.bytes(12)]))))
    for k in range(4):
        values = rng.integers(0, 1000, rng.integers(0, 10))
        features.append(("var_%d" % k, train.Feature(int64_list=train.Int64List(value=values))))
    if not mixed:
        message = train.Example(features=train.Features(feature=dict(features)))
        return message.SerializeToString()
    order = rng.permutation(len(features))
    keep = [features[i] for i in order if not features[i][0].startswith("var") or rng.random() < 0.7]
    parts = [train.Example(features=train.Features(feature={k: v})).SerializeToString() for k, v in keep]
    inside = b"".join(part[3 if part[1] >= 128 else 2 :] for part in parts)
    n = len(inside)
    return bytes([10, n & 127 | 128, n >> 7]) + inside


def features(tf):
    found = {}
    for k in range(6):
        found["float_%d" % k] = tf.FixedLenFeature([8], tf.float32)
        found["int_%d" % k] = tf.FixedLenFeature([4], tf.int64)
    for k in range(4):
        found["bytes_%d" % k] = tf.FixedLenFeature([], tf.string)
        found["var_%d" % k] = tf.VarLenFeature(tf.int64)
    return found


def picture():
    y, x = np.mgrid[:240, :320]
    waves = np.stack([np.sin(x / (9.0 + c)) + np.cos(y / 13.0) for c in range(3)], -1)
    noise = np.random.default_rng(1).random(waves.shape) * 0.1
    return np.uint8(np.clip(waves / 4 + 0.5 + noise, 0, 1) * 255)


def run(tf, b):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "records")
    b.once("write_s", lambda: write(tf, path))

    def iterate():
        return sum(1 for _ in tf.python_io.tf_record_iterator(path))

    b.rate("iterator_records_per_s", iterate, calls=RECORDS, unit="records/s", seconds=2, warmup=1)

    with tf.Graph().as_default(), tf.Session() as sess:
        queue = tf.train.string_input_producer([path])
        reader = tf.TFRecordReader()
        _, values = reader.read_up_to(queue, BATCH)
        _, value = reader.read(queue)
        count = tf.size(values)
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)

        def many():
            n = 0
            while n < 10000:
                n += sess.run(count)
            return n

        b.rate("read_up_to_records_per_s", many, calls=10000, unit="records/s", seconds=2, warmup=1)
        b.latency("read_us", lambda: sess.run(value), seconds=1, inner=100, warmup=10)
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=5)

    rng = np.random.default_rng(0)
    for name, mixed in (("parse_batch", False), ("parse_mixed", True)):
        batch = np.array([example(tf, rng, mixed) for _ in range(BATCH)], object)
        with tf.Graph().as_default(), tf.Session() as sess:
            serialized = tf.placeholder(tf.string, [None])
            parsed = tf.parse_example(serialized, features(tf))
            feed = {serialized: batch}
            found = sess.run(parsed, feed)
            b.report(name + "_sum", float(sum(found["float_%d" % k].sum() for k in range(6))), "check")
            b.latency(name + "_us", lambda: sess.run(parsed, feed), seconds=2, warmup=10)
            if not mixed:
                one = tf.placeholder(tf.string, [])
                parsed_one = tf.parse_single_example(one, features(tf))
                feed_one = {one: batch[0]}
                b.latency("parse_single_us", lambda: sess.run(parsed_one, feed_one), seconds=1, warmup=10)

    with tf.Graph().as_default(), tf.Session() as sess:
        pixels = tf.placeholder(tf.uint8, [240, 320, 3])
        encoded = sess.run([tf.image.encode_jpeg(pixels), tf.image.encode_png(pixels)], {pixels: picture()})
        contents = tf.placeholder(tf.string, [])
        for name, decode, data in zip(("jpeg", "png"), (tf.image.decode_jpeg, tf.image.decode_png), encoded):
            image = decode(contents, channels=3)
            b.latency("decode_%s_us" % name, lambda: sess.run(image, {contents: data}), seconds=1, warmup=5)
        for name, encode in (("jpeg", tf.image.encode_jpeg), ("png", tf.image.encode_png)):
            data = encode(pixels)
            b.latency(
                "encode_%s_us" % name, lambda: sess.run(data, {pixels: picture_once}), seconds=1, warmup=3
            )


picture_once = picture()
