"""thalweg from scratch: a dataflow system in plain NumPy, as prose that runs.

    python docs/from_scratch.py

Read it from top to bottom. Each part adds one idea; the last one tries them all and asserts what comes out.
The words are thalweg's own (docs/glossary.md); each part says which files of thalweg do the same in full.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

# 1. The graph (src/thalweg/graph/)
# A program builds a graph, then runs parts of it as often as it likes. A node is an *operation*: a type,
# inputs, attributes. An edge is a *tensor*: a handle on an operation's output. It knows its shape, never its
# data. A *control edge* carries no data: it says "after". (Operations here have one output, or none.)

class Tensor:
    """An output of an operation."""
    def __init__(self, op: Operation, shape: tuple[int, ...]) -> None:
        self.op, self.shape = op, shape

    __add__ = lambda self, other: node("Add", self, other)
    __sub__ = lambda self, other: node("Sub", self, other)
    __mul__ = lambda self, other: node("Mul", self, other)
    __matmul__ = lambda self, other: node("MatMul", self, other)

_ids = itertools.count()
class Operation:
    """A node: what kind it is, what it takes, what it waits for."""
    def __init__(self, type: str, inputs: list[Tensor], controls: list[Operation], attrs: dict) -> None:
        self.type, self.inputs, self.controls, self.attrs = type, inputs, controls, attrs
        self.id = next(_ids)
        self.name = f"{type}_{self.id}"
        shape = OPS[type].shape(self)  # a call that doesn't fit fails here, where the user made it
        self.output = None if shape is None else Tensor(self, shape)

    def needs(self) -> list[Operation]:
        """The operations that must have run before this one."""
        return list(dict.fromkeys([*(t.op for t in self.inputs), *self.controls]))

def operation(type: str, *inputs: Any, controls: tuple[Operation, ...] = (), **attrs: Any) -> Operation:
    """Adds a node. Numbers and arrays among the inputs become constants."""
    tensors = [t if isinstance(t, Tensor) else node("Const", value=np.asarray(t, np.float32)) for t in inputs]
    return Operation(type, tensors, list(controls), attrs)

def node(type: str, *inputs: Any, **attrs: Any) -> Any:
    """The same, for its output."""
    return operation(type, *inputs, **attrs).output

# 2. An op is one record (src/thalweg/ops/, kernel/convention.py)
# All that is known of a type of operation stands in one place: how the shape of its output follows from its
# inputs; its *kernel*, a pure function of arrays; its *gradient*, a function that adds nodes to the graph. A
# stateful kernel gets the step as its first argument: the only door to what isn't an argument.

def no_gradient(op: Operation, dy: Tensor) -> list[Tensor]:
    raise LookupError(f"No gradient defined for operation '{op.name}' (op type: {op.type})")

@dataclass
class Record:
    """What is known of one op. gradient(op, dy) gives one tensor per input."""
    shape: Callable[[Operation], tuple[int, ...] | None]
    kernel: Callable[..., Any]
    gradient: Callable[[Operation, Any], list[Tensor]] = no_gradient
    stateful: bool = False

def matmul_shape(op: Operation) -> tuple[int, int]:
    a, b = (t.shape for t in op.inputs)
    if a[1] != b[0]:
        raise ValueError(f"{op.name}: inner dimensions differ: {a[1]} and {b[0]}")
    return a[0], b[1]

def sum_to(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Adds up what broadcasting from `shape` has spread."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    return x.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)

def to_inputs(op: Operation, *grads: Tensor) -> list[Tensor]:
    """Gradients of an op that broadcasts, each brought to the shape of its input."""
    return [node("SumTo", g, shape=t.shape) for g, t in zip(grads, op.inputs, strict=True)]

same = lambda op: op.inputs[0].shape
given = lambda op: op.attrs["shape"]
broadcast = lambda op: np.broadcast_shapes(*(t.shape for t in op.inputs))
OPS: dict[str, Record] = {
    "Const": Record(lambda op: op.attrs["value"].shape, lambda value: value),
    "Placeholder": Record(given, lambda shape: None),  # always fed: see prune
    "Add": Record(broadcast, np.add, lambda op, dy: to_inputs(op, dy, dy)),
    "Sub": Record(broadcast, np.subtract, lambda op, dy: to_inputs(op, dy, dy * -1.0)),
    "Mul": Record(broadcast, np.multiply, lambda op, dy: to_inputs(op, *(dy * t for t in op.inputs[::-1]))),
    "MatMul": Record(matmul_shape, np.matmul, lambda op, dy: [
        dy @ node("Transpose", op.inputs[1]), node("Transpose", op.inputs[0]) @ dy]),
    "Tanh": Record(same, np.tanh, lambda op, dy: [dy - dy * op.output * op.output]),
    "Sum": Record(lambda op: (), np.sum, lambda op, dy: [node("Spread", dy, shape=same(op))]),
    "SumTo": Record(given, sum_to),
    "Spread": Record(given, np.broadcast_to),
    "Transpose": Record(lambda op: same(op)[::-1], np.transpose),
    "NoOp": Record(lambda op: None, lambda: None),
}

# 3. Gradients extend the graph (src/thalweg/autodiff/)
# Nothing is differentiated while a step runs. We walk back from y, each operation after all that consume it,
# and let each add what its gradient needs. The result is more graph: pruned, placed and run like the rest.

def ancestors(roots: list[Operation], stop: Any = ()) -> list[Operation]:
    """The roots and all that they need, each after its inputs. Tensors in `stop` are not followed."""
    seen: dict[Operation, None] = {}
    def visit(op: Operation) -> None:
        if op not in seen:
            for before in [*(t.op for t in op.inputs if t not in stop), *op.controls]:
                visit(before)
            seen[op] = None
    for root in roots:
        visit(root)
    return list(seen)

def gradients(y: Tensor, xs: list[Tensor]) -> list[Tensor]:
    """The derivative of the scalar y with respect to each x."""
    order, useful = ancestors([y.op]), set(xs)  # useful: tensors on a way from an x to y
    useful.update(op.output for op in order if any(t in useful for t in op.inputs))
    total: dict[Tensor, Tensor] = {y: node("Const", value=np.float32(1.0))}
    for op in reversed(order):
        if op.output not in total or useful.isdisjoint(op.inputs):
            continue
        for t, g in zip(op.inputs, OPS[op.type].gradient(op, total[op.output]), strict=True):
            if t in useful:  # what is used twice gets the sum of two gradients
                total[t] = total[t] + g if t in total else g
    return [total[x] for x in xs]

# 4. Variables (src/thalweg/ops/variables.py, runtime/resources.py)
# A variable is three nodes: the variable, whose output is a *handle*; its initial value; the assign of it.
# Reads and updates are further nodes. The array lives in the session's container, and outlives a step. It is
# never changed in place: an update puts another there, so what a read returned is a snapshot.

class Container:
    """Arrays by name. The lock makes an update whole, so none is lost."""
    def __init__(self) -> None:
        self.lock, self.values = threading.Lock(), {}

def read(step: Step, name: str) -> np.ndarray:
    if name in step.container.values:
        return step.container.values[name]
    raise LookupError(f"Attempting to use uninitialized value {name}")

def update(step: Step, name: str, new: np.ndarray, add: bool) -> np.ndarray:
    with step.container.lock:
        step.container.values[name] = new = read(step, name) + new if add else new
    return new

OPS["Variable"] = Record(given, lambda shape, name: name)
OPS["Read"] = Record(same, read, stateful=True)
OPS["Assign"] = Record(same, lambda step, name, x: update(step, name, x, False), stateful=True)
OPS["AssignAdd"] = Record(same, lambda step, name, x: update(step, name, x, True), stateful=True)
WRITES = ("Assign", "AssignAdd")

class Variable:
    """What users hold: the handle, the initializer, a read."""
    def __init__(self, initial: Any, name: str) -> None:
        self.handle = node("Variable", shape=np.shape(initial), name=name)
        self.initializer = operation("Assign", self.handle, initial)
        self.value = node("Read", self.handle)

# 5. From a signature to a plan (src/thalweg/plan/)
# A run names fetches and feeds. Only what the fetches need is copied; walking back stops at a feed, and any
# tensor can be fed. Feeds become Arg nodes, fetches Retval nodes. The copy is private: passes may change it.

OPS["Arg"] = Record(given, lambda step, index, shape: step.args[index], stateful=True)
OPS["Retval"] = Record(lambda op: None, lambda step, x, index: step.results.update({index: x}), stateful=True)

def prune(fetches: list[Any], feeds: list[Tensor]) -> list[Operation]:
    """A copy of what the fetches need."""
    copies: dict[Any, Any] = {t: node("Arg", index=i, shape=t.shape) for i, t in enumerate(feeds)}
    ops = [a.op for a in copies.values()]
    for op in ancestors([getattr(f, "op", f) for f in fetches if f not in feeds], feeds):
        if op.type == "Placeholder":
            raise ValueError(f"You must feed a value for {op.name}")
        copy = Operation(op.type, [copies[t] for t in op.inputs], [copies[c] for c in op.controls], op.attrs)
        copies[op], copy.name = copy, op.name
        copies.setdefault(op.output, copy.output)
        ops.append(copy)
    wanted = [(i, f) for i, f in enumerate(fetches) if isinstance(f, Tensor)]
    return ops + [operation("Retval", copies[f], index=i) for i, f in wanted]

def order_state(ops: list[Operation]) -> list[Operation]:
    """The nodes in order. Where the program leaves it open, a read of a variable comes before a write, and
    control edges hold any executor to it. (plan/order.py does so in more cases than these few lines.)"""
    left, order = sorted(ops, key=lambda op: (op.type in WRITES, op.id)), {}
    while left:
        op = left.pop(next(i for i, op in enumerate(left) if all(n in order for n in op.needs())))
        if op.type in ("Read", *WRITES):
            earlier = [e for e in order if e.type in ("Read", *WRITES) and e.inputs[0] is op.inputs[0]]
            op.controls += [e for e in earlier if op.type in WRITES or e.type in WRITES]
        order[op] = None
    return list(order)

# 6. Placement by simulation (the white paper, section 3.2.1)
# Which device runs which node? Pretend to run the graph. A node's finish on a device is the time when its
# inputs are there (a transfer costs latency and bytes) and the device is free, plus its run time. Take the
# soonest. State stays where it is: what takes a variable's handle goes to the variable.

LATENCY, BYTES_PER_US, FLOPS_PER_US = 2.0, 4000.0, 2000.0  # of pretend devices

def run_time(op: Operation) -> float:
    """Microseconds, by a static estimate."""
    each = 2 * op.inputs[0].shape[1] if op.type == "MatMul" else 1
    return 0.2 + each * np.prod(op.output.shape) / FLOPS_PER_US if op.inputs and op.output else 0.0

def move_time(t: Tensor) -> float:
    return LATENCY + 4 * np.prod(t.shape) / BYTES_PER_US

def place(order: list[Operation], devices: list[str]) -> tuple[dict[Operation, str], float]:
    """A device for each node, and how long the simulated step takes."""
    free, where, finished = dict.fromkeys(devices, 0.0), {}, {}
    for op in order:
        finish: dict[str, float] = {}
        for device in [where[op.inputs[0].op]] if op.type in ("Read", *WRITES) else devices:
            arrivals = [finished[t.op] + (0.0 if where[t.op] == device else move_time(t)) for t in op.inputs]
            finish[device] = max([free[device], *arrivals]) + run_time(op)
        where[op] = device = min(finish, key=lambda d: finish[d])
        finished[op] = free[device] = finish[device]
    return where, max(free.values())

# 7. Partition: each crossing edge becomes Send -> Recv
# The placed graph is cut. A tensor crosses once: all its consumers over there share one Recv. Control edges
# cross as empty messages. Both meet in a *rendezvous*, by key. A Recv blocks no thread: it leaves a callback.

OPS["Send"] = Record(lambda op: None, lambda step, *x, key: step.rendezvous.send(key, *x), stateful=True)
OPS["Recv"] = Record(given, lambda done, step, key, shape: step.rendezvous.recv(key, done))

class Rendezvous:
    """Where a value waits for its receiver, or a receiver for its value. One per step."""
    def __init__(self) -> None:
        self.lock, self.values, self.receivers = threading.Lock(), {}, {}

    def send(self, key: str, value: Any = 0.0) -> None:
        with self.lock:
            self.values[key] = value
            receiver = self.receivers.pop(key, None)
        if receiver is not None:
            receiver(value)

    def recv(self, key: str, receiver: Callable[[Any], None]) -> None:
        with self.lock:
            if key not in self.values:
                return self.receivers.update({key: receiver})
        receiver(self.values[key])

def partition(order: list[Operation], where: dict[Operation, str]) -> dict[str, list[Operation]]:
    """One list of nodes per device, joined only by Send and Recv."""
    parts: dict[str, list[Operation]] = {device: [] for device in where.values()}
    arrivals: dict[Any, Operation] = {}

    def here(x: Any, device: str) -> Any:
        """A tensor (or operation) of this device that stands for x."""
        source = x.op if isinstance(x, Tensor) else x
        if where[source] == device:
            return x
        data = [x] if isinstance(x, Tensor) else []
        if (x, device) not in arrivals:
            key = f"{source.name}{'' if data else ' (control)'}: {where[source]} -> {device}"
            parts[where[source]].append(operation("Send", *data, controls=(source,), key=key))
            arrivals[x, device] = operation("Recv", key=key, shape=x.shape if data else ())
            parts[device].append(arrivals[x, device])
        return arrivals[x, device].output if data else arrivals[x, device]

    for op in order:
        op.inputs = [here(t, where[op]) for t in op.inputs]
        op.controls = [here(c, where[op]) for c in op.controls]
        parts[where[op]].append(op)
    return parts

# 8. The executor (src/thalweg/runtime/executor.py)
# One per device: count the unfinished inputs of each node, run what is ready, count down its consumers. A
# Recv's callback puts the value into the queue of what is ready. The first error ends the step everywhere.

class Step:
    """One run of a plan."""
    def __init__(self, container: Container, args: list[Any], n: int) -> None:
        self.container, self.args, self.rendezvous = container, args, Rendezvous()
        self.results, self.error, self.queues = {}, None, [queue.SimpleQueue() for _ in range(n)]

    def execute(self, ops: list[Operation], events: queue.SimpleQueue[Any]) -> None:
        """Runs one partition in the calling thread."""
        values: dict[Tensor | None, Any] = {}
        left = {op: len(op.needs()) for op in ops}
        users = {op: [u for u in ops if op in u.needs()] for op in ops}
        for op in [op for op in ops if left[op] == 0]:
            events.put((op, ()))
        try:
            for _ in range(len(ops) + sum(op.type == "Recv" for op in ops)):
                event = events.get()
                if event is None:
                    return
                op, result = event
                if op.type == "Recv" and not result:  # start it; another event brings its value
                    OPS["Recv"].kernel(lambda x, op=op: events.put((op, (x,))), self, **op.attrs)
                    continue
                inputs = [self] * OPS[op.type].stateful + [values[t] for t in op.inputs]
                values[op.output] = result[0] if result else OPS[op.type].kernel(*inputs, **op.attrs)
                for user in users[op]:
                    left[user] -= 1
                    if left[user] == 0:
                        events.put((user, ()))
        except Exception as error:
            self.error = self.error or error
            for other in self.queues:
                other.put(None)

# 9. The session (src/thalweg/client/session.py)

class Session:
    """Runs parts of the graph. A signature is planned once; steps may run in many threads at once."""
    def __init__(self, devices: list[str]) -> None:
        self.devices, self.container, self.plans = devices, Container(), {}

    def plan(self, fetches: list[Any], feeds: list[Tensor]) -> tuple[dict[str, list[Operation]], float]:
        """The partitions of a signature, and its simulated time."""
        key = (*fetches, None, *feeds)
        if key not in self.plans:
            order = order_state(prune(fetches, feeds))
            where, time = place(order, self.devices)
            self.plans[key] = partition(order, where), time
        return self.plans[key]

    def run(self, fetches: list[Any], feeds: dict[Tensor, Any] | None = None) -> list[Any]:
        """The values of the fetches; None for an operation."""
        feeds = feeds or {}
        parts, _ = self.plan(fetches, list(feeds))
        step = Step(self.container, list(feeds.values()), len(parts))
        with ThreadPoolExecutor(len(parts)) as threads:
            list(threads.map(step.execute, parts.values(), step.queues))
        if step.error is not None:
            raise step.error
        return [step.results.get(i) for i in range(len(fetches))]

# 10. All of it, tried: two towers of 256 hidden units each learn y = sin(3x) together, by gradient descent

rng = np.random.default_rng(0)
x, target = node("Placeholder", shape=(64, 1)), node("Placeholder", shape=(64, 1))
variables, towers = [], []
for tower in ("left", "right"):
    w, b, v = (Variable(rng.normal(0, scale, shape).astype(np.float32), f"{tower}/{name}")
               for name, scale, shape in (("w", 2, (1, 256)), ("b", 1, (256,)), ("v", 0.02, (256, 1))))
    variables += [w, b, v]
    towers.append(node("Tanh", x @ w.value + b.value) @ v.value)
error = towers[0] + towers[1] - target
loss = node("Sum", error * error) * (1 / 64)
grads = gradients(loss, [v.value for v in variables])
updates = [node("AssignAdd", v.handle, g * -0.002).op for v, g in zip(variables, grads, strict=True)]
train = operation("NoOp", controls=tuple(updates))
initialize = operation("NoOp", controls=tuple(v.initializer for v in variables))

points = np.linspace(-1, 1, 64, dtype=np.float32).reshape(64, 1)
feed = {x: points, target: np.sin(3 * points)}
session = Session(["cpu:0", "cpu:1"])

try:
    session.run([loss], feed)
except LookupError as e:
    print(f"before initialisation: {e}")
session.run([initialize])
assert session.run([towers[0] + 1.0], {towers[0]: 41.0}) == [42.0]  # fed in the middle: nothing else runs

# The gradient agrees with a difference quotient.
start = session.container.values["left/b"]
nudged = start + np.float32(1e-2) * np.eye(256, dtype=np.float32)[3]
up, down = (session.run([loss], {**feed, variables[1].value: b})[0] for b in (nudged, 2 * start - nudged))
slope = session.run([grads[1]], feed)[0][3]
assert abs((up - down) / 2e-2 - slope) < 1e-3

# The simulation uses both devices, and says what that is worth. Results don't depend on it.
parts, time = session.plan([train, loss], list(feed))
alone = Session(["cpu:0"])
alone.run([initialize])
alone_time = alone.plan([train, loss], list(feed))[1]
print(f"simulated step: {alone_time:.0f} us on one device, {time:.0f} us on two")
assert len(parts) == 2 and time < alone_time
assert np.allclose(alone.run([loss], feed), session.run([loss], feed))

losses = [session.run([train, loss], feed)[1] for _ in range(300)]
print("loss:", *(f"{loss:.4f}" for loss in losses[::60]), f"... {losses[-1]:.4f}")
assert losses[-1] < 0.01 < losses[0]

# A read that the program doesn't order comes before the write; and no update is lost.
count = Variable(np.float32(0), "count")
add = node("AssignAdd", count.handle, 1.0)
session.run([count.initializer])
assert session.run([add, count.value]) == [1.0, 0.0]
with ThreadPoolExecutor(4) as threads:
    list(threads.map(session.run, [[add]] * 200))
assert session.run([count.value]) == [201.0]
print("4 threads added 1 two hundred times in all: no update was lost")
