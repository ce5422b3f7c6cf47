"""Fuzzing: mutated files into readers, and a count of what came out.

    PYTHONPATH=src python -m tests.fuzz [--only bundle,table] [--count 50000] [--seconds 60] [--seed 1]

A target is a module of this folder in TARGETS. It has `NAME`; `seeds() -> list[bytes]`, good inputs;
`run(data: bytes) -> None`, which reads one input and may raise tf.errors (and what `ALLOWED` lists); and, if plain
changes of bytes would all end at a checksum, `mutate(rng, data) -> bytes`. Nothing else may come out, no input may
take SLOW seconds, or more memory than LIMIT bytes beyond what the process has at the start. What does is printed
and kept under tests/fuzz/found/; move what was repaired to tests/fuzz/kept/<NAME>/, where test_fuzz.py runs it.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import importlib
import pathlib
import random
import resource
import time
import traceback
from typing import Any

from thalweg.base.errors import OpError

HERE = pathlib.Path(__file__).parent
#: modules of this folder, in order of their names
TARGETS = ("bundle", "checkpoint_state", "examples", "graphdef", "images", "metagraph", "records", "saved_model", "table", "version_1")
SLOW = 5.0
LIMIT = 1 << 30

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1)


def target(name: str) -> Any:
    """The module of a target."""
    return importlib.import_module(f"tests.fuzz.{name}")


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """A few changes: bits, bytes, numbers, cuts, pieces twice, gone, or moved."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(result) + 1)
        kind = rng.randrange(8)
        if not result or kind == 0:
            result[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 1:
            result[at % len(result)] ^= 1 << rng.randrange(8)
        elif kind == 2:
            result[at % len(result)] = rng.randrange(256)
        elif kind == 3:
            number, size = rng.choice(_NUMBERS), rng.choice((1, 2, 4, 8))
            result[at : at + size] = (number & ((1 << 8 * size) - 1)).to_bytes(size, rng.choice(("little", "big")))
        elif kind == 4:
            del result[at:]
        elif kind == 5:
            del result[at : at + rng.randrange(1, 32)]
        elif kind == 6:
            start = rng.randrange(len(result))
            result[at:at] = result[start : start + rng.randrange(1, 64)]
        else:
            varint = bytes(rng.choice((0x80, 0xFF)) for _ in range(rng.randrange(1, 10))) + b"\x01"
            result[at : at + 1] = varint
    return bytes(result)


def run_one(module: Any, data: bytes) -> str:
    """The name of the error that came out, or "read". Anything that may not come out is raised."""
    started = time.monotonic()
    try:
        module.run(data)
        result = "read"
    except (OpError, *getattr(module, "ALLOWED", ())) as e:
        result = type(e).__name__
    if time.monotonic() - started > SLOW:
        raise TimeoutError(f"took {time.monotonic() - started:.1f} s")
    return result


def fuzz(module: Any, count: int, seconds: float, seed: int) -> tuple[collections.Counter[str], int]:
    """Runs a target: what came out how often, and how many inputs failed."""
    rng = random.Random(seed)
    seeds = module.seeds()
    mutate = getattr(module, "mutate", mutate_bytes)
    outcomes: collections.Counter[str] = collections.Counter()
    failed = 0
    for data in seeds:
        assert run_one(module, data) == "read", "a seed must be good"
    deadline = time.monotonic() + seconds
    while outcomes.total() < count and time.monotonic() < deadline:
        data = mutate(rng, rng.choice(seeds))
        try:
            outcomes[run_one(module, data)] += 1
        except Exception:
            failed += 1
            outcomes["FAILED"] += 1
            keep(module.NAME, data)
            if failed <= 5:
                traceback.print_exc()
    return outcomes, failed


def keep(name: str, data: bytes) -> None:
    """Writes an input that failed to found/."""
    folder = HERE / "found" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(data).hexdigest()[:12]).write_bytes(data)


def limit_memory() -> None:
    """From here on the process gets LIMIT bytes more at most: what asks for more is a MemoryError."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + LIMIT, resource.RLIM_INFINITY))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=",".join(TARGETS))
    parser.add_argument("--count", type=int, default=10000, help="inputs for each target")
    parser.add_argument("--seconds", type=float, default=1e9, help="time for each target")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    modules = [target(name) for name in args.only.split(",")]
    limit_memory()
    total = bad = 0
    print(f"seed {args.seed}")
    for module in modules:
        started = time.monotonic()
        outcomes, failed = fuzz(module, args.count, args.seconds, args.seed)
        total, bad = total + outcomes.total(), bad + failed
        shown = ", ".join(f"{name} {n}" for name, n in outcomes.most_common())
        print(f"{module.NAME}: {outcomes.total()} inputs in {time.monotonic() - started:.0f} s: {shown}", flush=True)
    print(f"{total} inputs, {bad} failed")
    raise SystemExit(bad > 0)
