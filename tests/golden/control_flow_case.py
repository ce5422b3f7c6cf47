"""What programs with branches and loops share: the case that each returns, and how it is run.

A program takes the module `tf`: TensorFlow's own, or thalweg. It builds into the default graph and returns a Case.
Errors count too: a run that fails is recorded as the name of its error's class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

FLOAT = np.float32


@dataclasses.dataclass
class Case:
    """What to run: the fetches, once with each of the feeds."""

    fetches: Sequence[Any]
    feeds: Sequence[dict[Any, Any]] = ({},)


PROGRAMS: dict[str, Callable[[Any], Case]] = {}


def program(build: Callable[[Any], Case]) -> Callable[[Any], Case]:
    """Adds a program under its function's name."""
    assert build.__name__ not in PROGRAMS
    PROGRAMS[build.__name__] = build
    return build


def run(
    tf: Any, name: str, config: Any = None, programs: dict[str, Callable[[Any], Case]] = PROGRAMS
) -> dict[str, np.ndarray]:
    """Builds and runs a program. The values of run r's fetch f under "name/r/f"."""
    result: dict[str, np.ndarray] = {}
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(7)
        case = programs[name](tf)
        with tf.Session(graph=graph, config=config) as session:
            session.run(tf.global_variables_initializer())
            for r, feed in enumerate(case.feeds):
                try:
                    values = session.run(list(case.fetches), feed)
                except tf.errors.OpError as e:
                    result[f"{name}/{r}/error"] = np.array([type(e).__name__.encode()], object)
                    continue
                for f, value in enumerate(values):
                    if value is not None:
                        result[f"{name}/{r}/{f}"] = np.asarray(value)
    return result


def grads(tf: Any, ys: Any, xs: Sequence[Any], **kwargs: Any) -> list[Any]:
    """The gradients, dense, zeros where there is none."""
    found = tf.gradients(ys, list(xs), **kwargs)
    return [tf.zeros_like(x) if g is None else tf.convert_to_tensor(g) for g, x in zip(found, xs)]  # noqa: B905


def floats(tf: Any, *names: str) -> list[Any]:
    return [tf.placeholder(tf.float32, [], name=n) for n in names]


def matrix(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape)).reshape(shape) % 7 / 4 - 0.75).astype(FLOAT)
