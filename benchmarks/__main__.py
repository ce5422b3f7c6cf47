"""python -m benchmarks: the same TensorFlow 1.x programs on thalweg and TensorFlow, side by side.

    python -m benchmarks [--tensorflow PYTHON] [--only PROGRAM,...] [--rounds 3] [--out FILE] [--table FILE]

Each round runs every program on TensorFlow, on thalweg and (where it is written by hand) in JAX, one after
the other, each in a process of its own, so that slow drifts of the machine touch all alike. The table shows
medians over the rounds, and their ratios with the target of each. `--tensorflow` is the interpreter of a
virtual environment that has tensorflow-cpu; `make bench` makes one in .venv-tensorflow.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

from benchmarks import placement_table, predicted_table

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = (
    "session_overhead",
    "mlp_train",
    "cnn_train",
    "graph_build",
    "import_graph",
    "cold_start",
    "first_steps",
    "concurrent_steps",
    "queue_throughput",
    "embedding_sparse",
    "scale",
    "while_overhead",
    "executor_loops",
    "lstm_train",
    "transformer_infer",
    "two_devices",
    "checkpoint",
    "records",
)
BY_HAND = ("session_overhead", "mlp_train", "lstm_train", "two_devices")
# of thalweg alone, once each, with a table of their own; not among what runs unless --only asks for it
OWN = {"placement": placement_table.table, "predicted_step": predicted_table.table}

# (program, metric, peer, at most this many times the peer's time); rates are turned into times
TARGETS = (
    ("session_overhead", "scalar_us", "tensorflow", 0.25),
    ("session_overhead", "feed20_fetch20_us", "tensorflow", 0.5),
    ("session_overhead", "callable_scalar_us", "tensorflow", 0.25),
    ("session_overhead", "callable_feed20_fetch20_us", "tensorflow", 0.5),
    ("mlp_train", "sgd_steps_per_s", "tensorflow", 1.0),
    ("mlp_train", "adam_steps_per_s", "tensorflow", 1.0),
    ("mlp_train", "sgd_steps_per_s", "jax", 1.15),
    ("mlp_train", "adam_steps_per_s", "jax", 1.15),
    ("cnn_train", "steps_per_s", "tensorflow", 1.5),
    ("graph_build", "resnet50_build_s", "tensorflow", 0.6),
    ("import_graph", "chain10k_import_s", "tensorflow", 1.5),
    ("import_graph", "layers10k_import_s", "tensorflow", 1.5),
    ("cold_start", "import_s", "tensorflow", 0.4),
    ("cold_start", "to_first_step_s", "tensorflow", 0.8),
    ("first_steps", "mlp_sgd_cold_s", "tensorflow", 4.0),
    ("first_steps", "mlp_sgd_warm_s", "tensorflow", 1.5),
    ("first_steps", "cnn_cold_s", "tensorflow", 4.0),
    ("first_steps", "cnn_warm_s", "tensorflow", 1.5),
    ("graph_build", "chain10k_first_run_s", "tensorflow", 2.5),
    ("graph_build", "chain10k_run_ms", "tensorflow", 0.2),
    ("scale", "first_run_10000_s", "tensorflow", 2.5),
    ("scale", "run_10000_us", "tensorflow", 0.2),
    ("concurrent_steps", "small_4_threads_steps_per_s", "tensorflow", 1.0),
    ("concurrent_steps", "medium_4_threads_steps_per_s", "tensorflow", 1.0),
    ("queue_throughput", "fifo_examples_per_s", "tensorflow", 1.0),
    ("queue_throughput", "shuffle_examples_per_s", "tensorflow", 1.0),
    ("queue_throughput", "enqueue_many_examples_per_s", "tensorflow", 1.0),
    ("queue_throughput", "raw_put_get_us", "tensorflow", 1.0),
    ("embedding_sparse", "sgd_steps_per_s", "tensorflow", 1.0),
    ("embedding_sparse", "adagrad_steps_per_s", "tensorflow", 1.0),
    ("while_overhead", "loop_us_per_iteration", "tensorflow", 0.02),
    ("while_overhead", "nested_us_per_iteration", "tensorflow", 0.02),
    ("while_overhead", "cond_in_loop_us_per_iteration", "tensorflow", 0.02),
    ("while_overhead", "gradient_us_per_iteration", "tensorflow", 0.1),
    ("executor_loops", "loop_us_per_iteration", "tensorflow", 3.0),
    ("executor_loops", "subgraph_runs_per_s", "tensorflow", 1.0),
    ("lstm_train", "steps_per_s", "tensorflow", 0.9),
    ("lstm_train", "steps_per_s", "jax", 1.2),
    ("transformer_infer", "concat_tokens_per_s", "tensorflow", 0.7),
    ("transformer_infer", "fixed_tokens_per_s", "tensorflow", 0.7),
    ("two_devices", "there2_us", "tensorflow", 1.0),
    ("two_devices", "transfer_16MB_ms", "jax", 1.25),
    ("two_devices", "read_16MB_ms", "jax", 1.25),
    ("checkpoint", "save_mb_per_s", "tensorflow", 1.25),
    ("checkpoint", "restore_mb_per_s", "tensorflow", 1.25),
    ("records", "iterator_records_per_s", "tensorflow", 2.0),
    ("records", "read_up_to_records_per_s", "tensorflow", 2.0),
    ("records", "parse_batch_us", "tensorflow", 2.0),
    ("records", "parse_mixed_us", "tensorflow", 2.0),
)


def run_once(python, backend, program, cache, timeout):
    """{metric: value} and {metric: unit} of one run of one program."""
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", XDG_CACHE_HOME=cache, PYTHONWARNINGS="ignore")
    env["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent / "src")])
    command = [python, str(HERE / "bench.py"), backend, program]
    p = subprocess.run(command, env=env, cwd=HERE, capture_output=True, text=True, timeout=timeout)
    if p.returncode:
        print(f"failed: {backend} {program}\n{p.stderr[-2000:]}", file=sys.stderr)
    rows = [json.loads(line) for line in p.stdout.splitlines() if line.startswith("{")]
    return {r["metric"]: (r["value"], r["unit"]) for r in rows}


def measure(args):
    """One record per program, backend, round and metric."""
    records = []
    backends = [
        ("tensorflow", args.tensorflow, "tensorflow.compat.v1"),
        ("thalweg", sys.executable, "thalweg"),
        ("jax", sys.executable, "jax"),
    ]
    for program in args.only.split(",") if args.only else PROGRAMS:
        for round_ in range(1 if program in OWN else args.rounds):
            for label, python, backend in backends:
                if label != "thalweg" and (program in OWN or (label == "jax" and program not in BY_HAND)):
                    continue
                with tempfile.TemporaryDirectory() as cache:  # every process starts with an empty disk cache
                    got = run_once(python, backend, program, cache, args.timeout)
                for metric, (value, unit) in got.items():
                    records.append(
                        {
                            "program": program,
                            "backend": label,
                            "round": round_,
                            "metric": metric,
                            "value": value,
                            "unit": unit,
                        }
                    )
                print(
                    f"{program} round {round_ + 1} {label}: {len(got)} figures", file=sys.stderr, flush=True
                )
    return records


def medians(records):
    """{(program, metric, backend): (median, unit)}"""
    groups = {}
    for r in records:
        groups.setdefault((r["program"], r["metric"], r["backend"]), ([], r["unit"]))[0].append(r["value"])
    return {k: (statistics.median(v), unit) for k, (v, unit) in groups.items()}


def times_the_peer(value, peer, unit):
    """How many times the peer's time a program takes."""
    return peer / value if unit.endswith("/s") else value / peer


def table(records):
    """The targets, and below them every figure, as Markdown."""
    found = medians([r for r in records if r["program"] not in OWN])
    lines = [
        "| program | figure | thalweg | peer | times the peer | target | |",
        "|---|---|---|---|---|---|---|",
    ]
    for program, metric, peer, target in TARGETS:
        mine, theirs = found.get((program, metric, "thalweg")), found.get((program, metric, peer))
        if mine is None or theirs is None:
            continue
        ratio = times_the_peer(mine[0], theirs[0], mine[1])
        lines.append(
            f"| {program} | {metric} | {mine[0]:.4g} | {peer} {theirs[0]:.4g} | {ratio:.2f} | "
            f"at most {target} | {'met' if ratio <= target else 'MISSED'} |"
        )
    lines += [
        "",
        "| program | figure | unit | tensorflow | thalweg | jax by hand |",
        "|---|---|---|---|---|---|",
    ]
    for program, metric, unit in sorted({(p, m, found[p, m, b][1]) for p, m, b in found}):
        cells = [found.get((program, metric, b)) for b in ("tensorflow", "thalweg", "jax")]
        lines.append(
            f"| {program} | {metric} | {unit} | "
            + " | ".join("-" if c is None else f"{c[0]:.5g}" for c in cells)
            + " |"
        )
    parts = ["\n".join(lines)] if found else []
    for program, own in OWN.items():
        figures = {r["metric"]: r["value"] for r in records if r["program"] == program}
        if figures:
            parts.append(own(figures))
    return "\n\n".join(parts)


def machine():
    """What the figures were measured on."""
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            model = next(
                (line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), model
            )
    return f"{os.cpu_count()} cores, {model}, Python {platform.python_version()}"


def main():
    """Measures, or prints the table of an earlier run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tensorflow", default=str(HERE.parent / ".venv-tensorflow/bin/python"))
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--out", help="writes the records to this file, a JSON line each")
    parser.add_argument("--table", help="prints the table of such a file and measures nothing")
    args = parser.parse_args()
    if args.table:
        records = [json.loads(line) for line in pathlib.Path(args.table).read_text().splitlines()]
    else:
        records = measure(args)
    if args.out:
        pathlib.Path(args.out).write_text("".join(json.dumps(r) + "\n" for r in records))
    print(f"{machine()}; medians of {args.rounds} rounds\n\n{table(records)}")


if __name__ == "__main__":
    main()
