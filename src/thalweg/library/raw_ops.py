"""tf.raw_ops: every op by keyword, under its own name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thalweg.graph import registry
from thalweg.graph.emitter import emit


def __getattr__(name: str) -> Callable[..., Any]:
    """The function of an op: tf.raw_ops.MatMul(a=..., b=..., transpose_a=...). Else AttributeError."""
    if name.startswith("_"):
        raise AttributeError(name)
    record = registry.find(name)
    if record is None:
        raise AttributeError(f"tf.raw_ops.{name} is not built in thalweg yet")

    def call(*, name: str | None = None, **keywords: Any) -> Any:
        return emit(record.name, name=name, **keywords)

    call.__name__ = call.__qualname__ = record.name
    call.__doc__ = record.definition.summary
    return call


def __dir__() -> list[str]:
    """Every op."""
    return sorted(n for n in registry.all_records() if not n.startswith("_"))
