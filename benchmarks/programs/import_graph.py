"""Reading graphs: import_graph_def of 10,000 nodes, as a chain of arithmetic and as layers of a network."""
import time


def chain(tf):
    x = tf.placeholder(tf.float32, [16])
    y = x
    for _ in range(5000):
        y = tf.add(tf.tanh(y), x)


def layers(tf):
    graph = tf.get_default_graph()
    y = tf.placeholder(tf.float32, [None, 8])
    while len(graph.get_operations()) < 10000:
        w, b = tf.constant([[0.1] * 8] * 8), tf.constant([0.5] * 8)
        y = tf.nn.relu(tf.nn.bias_add(tf.matmul(y, w), b))
        y = tf.reshape(tf.concat([y, y], 1)[:, :8], [-1, 8])


def run(tf, b):
    for name, build in (("chain10k", chain), ("layers10k", layers)):
        with tf.Graph().as_default() as graph:
            build(tf)
        data = graph.as_graph_def().SerializeToString()
        times, back = [], []
        for _ in range(9):
            message = tf.GraphDef()
            message.ParseFromString(data)
            with tf.Graph().as_default() as graph:
                start = time.perf_counter()
                tf.import_graph_def(message, name="")
                times.append(time.perf_counter() - start)
            start = time.perf_counter()
            graph.as_graph_def()
            back.append(time.perf_counter() - start)
        times, back = sorted(times), sorted(back)
        b.report(name + "_nodes", len(message.node), "count")
        b.report(name + "_import_s", times[len(times) // 2], "s", p10=times[0], p90=times[-1])
        b.report(name + "_export_s", back[len(back) // 2], "s", p10=back[0], p90=back[-1])
