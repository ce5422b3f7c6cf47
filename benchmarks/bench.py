"""What benchmark programs report through, and the backends that they run on."""

import importlib
import json
import os
import resource
import statistics
import sys
import time

SCALE = {"s": 1.0, "ms": 1e3, "us": 1e6}


class Bench:
    """What a program reports through."""

    def __init__(self, name, out=sys.stdout):
        self.name = name
        self.out = out

    def report(self, metric, value, unit, **extra):
        line = {"name": self.name, "metric": metric, "value": value, "unit": unit}
        line.update(extra)
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()

    def sample(self, fn, seconds=3.0, warmup=3, inner=1, least=5):
        """Seconds per call of fn(), as a list of samples.

        Each sample times `inner` calls together (use it for calls of a few
        microseconds).  Stops after `seconds`, but never before `least` samples.
        """
        for _ in range(warmup):
            fn()
        samples = []
        stop = time.perf_counter() + seconds
        while len(samples) < least or time.perf_counter() < stop:
            start = time.perf_counter()
            for _ in range(inner):
                fn()
            samples.append((time.perf_counter() - start) / inner)
        return samples

    def latency(self, metric, fn, unit="us", calls=1, **how):
        """Median time of one of the `calls` units of work that fn() does."""
        k = SCALE[unit] / calls
        self._timed(metric, [s * k for s in self.sample(fn, **how)], unit)

    def rate(self, metric, fn, calls=1, unit="steps/s", **how):
        """Units of work per second, from the median time of fn()."""
        self._timed(metric, [calls / s for s in self.sample(fn, **how)], unit)

    def _timed(self, metric, values, unit):
        values = sorted(values)
        n = len(values)
        self.report(metric, statistics.median(values), unit,
                    p10=values[n // 10], p90=values[(n * 9) // 10], samples=n)

    def once(self, metric, fn, unit="s"):
        """Times a single call and returns what it returned."""
        start = time.perf_counter()
        result = fn()
        self.report(metric, (time.perf_counter() - start) * SCALE[unit], unit)
        return result

    def train(self, prefix, step, k=20, seconds=4.0):
        """Trains: first-step time, loss of step k, then the step rate.

        step(i) runs the i-th step (i = 0, 1, ...) and returns its loss, the
        one before that step's update.
        """
        loss = self.once(prefix + "first_step_s", lambda: step(0))
        self.report(prefix + "loss_1", float(loss), "loss")
        for i in range(1, k):
            loss = step(i)
            if i == 2:  # before rounding differences have grown
                self.report(prefix + "loss_3", float(loss), "loss")
        self.report(prefix + "loss_%d" % k, float(loss), "loss")
        counter = [k]

        def one():
            step(counter[0])
            counter[0] += 1

        self.rate(prefix + "steps_per_s", one, seconds=seconds, warmup=0)

    def peak_rss(self):
        kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.report("peak_rss_mb", kb / 1024.0, "MB")


def load_backend(name):
    """The module of a backend, ready for TensorFlow 1.x programs."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    tf = importlib.import_module(name)
    tf.logging.set_verbosity(tf.logging.ERROR)
    if hasattr(tf, "disable_v2_behavior"):
        tf.disable_v2_behavior()
    return tf


def main():
    """python bench.py BACKEND PROGRAM: one program on one backend ("jax": by hand), as JSON lines."""
    backend, name = sys.argv[1:3]
    if backend == "jax":
        importlib.import_module("by_hand").__dict__[name](Bench(name))
    else:
        importlib.import_module("programs." + name).run(load_backend(backend), Bench(name))


if __name__ == "__main__":
    main()
