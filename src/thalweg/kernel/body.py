"""A slice of a graph that becomes one pure function: its nodes in order, inputs, outputs, and state.

Made by thalweg.plan.encapsulate, turned into a function by thalweg.kernel.trace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from thalweg.base.dtypes import DType
from thalweg.graph import registry
from thalweg.graph.operation import Operation, Tensor
from thalweg.kernel.convention import Kernel

StateKey = tuple[str, str, str]  # (kind, container, name): "variable" or "node"


class Body:
    """The nodes of a cluster in the order in which they are traced, and how values get in and out."""

    def __init__(
        self,
        nodes: Sequence[Operation],
        args: Sequence[Tensor],
        static_args: Sequence[Tensor],
        results: Sequence[Tensor],
        state_of: dict[Operation, dict[str, StateKey]],
        constants: Sequence[Operation] = (),
        masked: frozenset[Operation] | set[Operation] = frozenset(),
        scalar: bool = False,
    ) -> None:
        """
        nodes: in execution order. args: tensors from outside, as arrays. static_args: tensors from outside
        whose values must be known when tracing. results: tensors that leave.
        state_of: for each node that touches state, the key behind each argument name (and "" for a state
        of its own). constants: Const nodes from outside whose values are copied in.
        masked: updates that are not stored where a condition of this body fails (see plan.mark).
        scalar: runs on the host, as Python code (see kernel.scalars).
        """
        self.scalar = scalar
        self.nodes = list(nodes)
        self.args = list(args)
        self.static_args = list(static_args)
        self.results = list(results)
        self.state_of = state_of
        self.constants = list(constants)
        self.masked = masked
        #: states that keep their old value where a condition fails
        self.kept: list[StateKey] = []
        self.reads: list[StateKey] = []
        self.writes: list[StateKey] = []
        self.initial_state: dict[StateKey, np.ndarray] = {}
        self._find_state()
        self.key = self._content_key()

    def __repr__(self) -> str:
        return f"<Body of {len(self.nodes)} nodes>"

    @property
    def result_names(self) -> list[str]:
        """The names of what leaves."""
        return [t.name for t in self.results]

    def walk(self) -> Iterator[Operation]:
        """The nodes, and those of bodies inside them (compiled loops and branches), the inner ones first."""
        for op in self.nodes:
            for value in op._attrs.values():
                if isinstance(value, Body):
                    yield from value.walk()
            yield op

    @property
    def may_fail(self) -> bool:
        """Whether some kernel has a condition that a bad value breaks."""
        checks = ((op, op._record.kernel.may_fail) for op in self.nodes)
        return any(check is not None and check(op) for op, check in checks)

    def _find_state(self) -> None:
        """Which states are needed from outside (read before written) and which are written."""
        reads: dict[StateKey, None] = {}
        writes: dict[StateKey, None] = {}
        for op in self.nodes:
            keys = self.state_of.get(op)
            if not keys:
                continue
            kernel: Kernel = op._record.kernel
            written = kernel.writes if kernel.own_state is None else (*kernel.writes, "")
            for name, key in keys.items():
                if name in written and kernel.overwrites and op not in self.masked:
                    continue
                if key not in writes:
                    reads.setdefault(key)
            for name in written:
                writes.setdefault(keys[name])
            if kernel.own_state is not None:
                self.initial_state[keys[""]] = kernel.own_state(op)
        self.reads = list(reads)
        self.writes = list(writes)
        if self.masked:
            self.kept = self._kept()

    def _kept(self) -> list[StateKey]:
        """The states that are written by masked updates only, and whose old value is at hand."""
        loose = {
            self.state_of[op][name]
            for op in self.nodes
            if op in self.state_of and op not in self.masked
            for name in op._record.kernel.writes
        }
        return [k for k in self.writes if k[0] == "variable" and k not in loose and k in self.reads]

    def _content_key(self) -> bytes:
        """A hash of what the function computes: structure, attributes, constants. Names don't count."""
        h = hashlib.blake2b(digest_size=20)
        index: dict[Tensor, str] = {}
        for i, t in enumerate(self.args):
            index[t] = f"a{i}"
        for i, t in enumerate(self.static_args):
            index[t] = f"s{i}"
        for i, op in enumerate(self.constants):
            index[op._outputs[0]] = f"c{i}"
            _hash_attrs(h, op._attrs)
        state = {k: i for i, k in enumerate(dict.fromkeys([*self.reads, *self.writes]))}
        for i, op in enumerate(self.nodes):
            for j, t in enumerate(op._outputs):
                index[t] = f"n{i}.{j}"
            names = [index.get(t, "r") for t in op._inputs]
            keys = [(n, state[k]) for n, k in self.state_of.get(op, {}).items() if k in state]
            h.update(f"|{op.type}{names}{keys}".encode())
            if registry.is_variant(op):
                fn = op._record.kernel.fn
                h.update(f"{fn.__module__}.{getattr(fn, '__qualname__', fn)}".encode())
            if keys:  # kernels of updates look at what a variable was declared as
                h.update(str([(t._shape, t._handle) for t in op._inputs if _is_state(t)]).encode())
            _hash_attrs(h, op._attrs)
        h.update(str([index[t] for t in self.results]).encode())
        h.update(str([state[k] for k in self.kept]).encode())
        h.update(
            str([len(self.args), [state[k] for k in self.reads], [state[k] for k in self.writes]]).encode()
        )
        return h.digest()


def _is_state(tensor: Tensor) -> bool:
    """Whether a tensor is a reference to a variable or a handle."""
    return tensor._dtype.is_ref_dtype or tensor._dtype.name == "resource"


def _hash_attrs(h: Any, attrs: dict[str, Any]) -> None:
    for name in sorted(attrs):
        if name.startswith("_") or name in ("seed", "seed2", "container", "shared_name"):
            continue
        value = attrs[name]
        if isinstance(value, np.ndarray):
            h.update(f"{name}{value.dtype}{value.shape}".encode())
            h.update(repr(value.tolist()).encode() if value.dtype == object else value.tobytes())
        elif isinstance(value, DType):
            h.update(f"{name}={value.name}".encode())
        elif isinstance(value, Body):
            h.update(f"{name}=".encode() + value.key)
        else:
            h.update(f"{name}={value!r}".encode())
