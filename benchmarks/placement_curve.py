"""How placement grows with the graph: seconds and memory for training graphs of 1,000 to 100,000 nodes.

    python -m benchmarks.placement_curve [--sizes 1000,10000,100000] [--devices 1000] [--json FILE]

The graph is an unrolled recurrent net of many layers with its gradients and updates; the cluster is tasks of
8 GPUs each, with links within and between them. Each size runs in a process of its own; times are processor
time.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

import thalweg as tf
from thalweg.client.session import plan_options
from thalweg.plan.pipeline import prepare
from thalweg.plan.placement.cluster import ClusterDescription
from thalweg.plan.placement.place import decide


def net(tf, nodes):
    """A training graph of about so many nodes: what is fetched."""
    cells = max(4, nodes // 19)
    layers = max(2, round(math.sqrt(cells / 2)))
    steps = max(2, round(cells / layers))
    size, batch = 1024, 128
    x = [tf.placeholder(tf.float32, [batch, size]) for _ in range(steps)]
    for layer in range(layers):
        w = tf.get_variable(f"w{layer}", [size, size])
        u = tf.get_variable(f"u{layer}", [size, size])
        state, outputs = tf.zeros([batch, size]), []
        for t in range(steps):
            state = tf.tanh(tf.matmul(x[t], w) + tf.matmul(state, u))
            outputs.append(state)
        x = outputs
    loss = tf.add_n([tf.reduce_mean(h) for h in x])
    return loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)


def measure(nodes, devices):
    """Places one graph; a row of the table."""
    cluster = ClusterDescription.from_json(json.dumps({
        "devices": [
            {"name": "/job:worker/task:{0..%d}/gpu:{0..7}" % (devices // 8 - 1), "memory": 1.6e10,
             "hosts": True}
        ],
        "same_task": {"latency": 1e-5, "bandwidth": 1.2e10},
        "other_task": {"latency": 5e-5, "bandwidth": 3e9},
    }))  # fmt: skip
    with tf.Graph().as_default() as graph:
        loss, train = net(tf, nodes)
    new, _, _ = prepare(graph, [], [loss], [train], plan_options(None))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    decision = decide(new._ops, cluster)
    spent = time.process_time() - start
    best = decision.choice.best
    return {
        "nodes": len(new._ops),
        "devices": len(cluster),
        "seconds": spent,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "graph_mb": before / 1024,
        "used": len(set(best.assignment)),
        "step_ms": best.result.makespan * 1e3,
        "single_ms": decision.choice.candidates[0].result.makespan * 1e3,
        "bound_ms": decision.choice.bound * 1e3,
        "chosen": best.name,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,3000,10000,30000,100000")
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--json")
    parser.add_argument("--one", type=int, help="place one graph of that size and print its row")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.devices)))
        return
    rows = []
    for size in args.sizes.split(","):
        command = [sys.executable, "-m", "benchmarks.placement_curve", "--one", size]
        command += ["--devices", str(args.devices)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    table = Table(box=None)
    for head in ("nodes", "seconds", "us per node", "per n log2 n (ns)", "peak memory MB", "of it the graph",
                 "devices used", "step ms", "on one device", "bound"):
        table.add_column(head, justify="right")
    for r in rows:
        n = r["nodes"]
        table.add_row(
            f"{n:,}", f"{r['seconds']:.2f}", f"{r['seconds'] / n * 1e6:.0f}",
            f"{r['seconds'] / n / math.log2(n) * 1e9:.0f}", f"{r['memory_mb']:.0f}", f"{r['graph_mb']:.0f}",
            str(r["used"]), f"{r['step_ms']:.2f}", f"{r['single_ms']:.2f}", f"{r['bound_ms']:.2f}",
        )
    Console(width=150).print(table)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
