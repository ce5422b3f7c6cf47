"""PyFunc: a Python function of this process as an operation. Source: TensorFlow's py_func.cc, script_ops.py.

A function runs only where it was registered: the graph carries a token, never code.
"""

from __future__ import annotations

import threading
import traceback
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

import numpy as np

from thalweg.base import errors
from thalweg.base.errors import OpError
from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import asynchronous


class _Registry:
    """Functions by token. Holds them weakly: the graph that uses one keeps it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._functions: weakref.WeakValueDictionary[str, Callable[..., Any]] = weakref.WeakValueDictionary()
        self._next = 0

    def register(self, function: Callable[..., Any]) -> str:
        with self._lock:
            token = f"pyfunc_{self._next}"
            self._next += 1
            self._functions[token] = function
        return token

    def find(self, token: str) -> Callable[..., Any] | None:
        return self._functions.get(token)


_registry = _Registry()


def register(function: Callable[..., Any]) -> str:
    """The token of a function, for PyFunc nodes. The caller must keep the function alive."""
    return _registry.register(function)


class _Threads:
    """Runs functions in daemon threads: an idle one where there is one, else a new one.

    A function that never returns holds its thread only: the step that waits for it can end.
    """

    #: idle threads kept for later
    _KEPT = 8

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[Callable[[], None]]] = []

    def submit(self, function: Callable[[], Any]) -> Future[Any]:
        """Starts function() now; its result or exception becomes the future's."""
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = function()
            except BaseException as e:  # whatever it is belongs to who waits for it
                future.set_exception(e)
            else:
                future.set_result(result)

        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), name="thalweg-py-func", daemon=True).start()
        inbox.put(work)
        return future

    def _serve(self, inbox: SimpleQueue[Callable[[], None]]) -> None:
        while True:
            inbox.get()()
            with self._lock:
                if len(self._idle) >= self._KEPT:
                    return
                self._idle.append(inbox)


_threads = _Threads()

_CLASSES: tuple[tuple[type[BaseException], type[OpError]], ...] = (
    (ValueError, errors.InvalidArgumentError),
    (TypeError, errors.InvalidArgumentError),
    (StopIteration, errors.OutOfRangeError),
    (MemoryError, errors.ResourceExhaustedError),
    (NotImplementedError, errors.UnimplementedError),
)


def _translate(context: Any, error: BaseException) -> OpError:
    """A user's exception as the step's error, with where in the function it was raised."""
    kind = next((to for of, to in _CLASSES if isinstance(error, of)), errors.UnknownError)
    trace = error.__traceback__
    text = "".join(traceback.format_exception(type(error), error, trace.tb_next if trace else None))
    result: OpError = context.fail(kind, f"{type(error).__name__}: {error}\n{text}")
    return result


def _py_func_kernel(
    context: Any, inputs: list[Any], *, token: str, Tout: tuple[np.dtype, ...]
) -> Future[Any]:
    # copies: the function may change its arguments, and others use these arrays
    args = [np.array(x) if np.ndim(x) else np.asarray(x)[()] for x in inputs]

    def call() -> list[np.ndarray]:
        function = _registry.find(token)
        if function is None:
            raise context.fail(
                errors.InvalidArgumentError,
                f"no function is registered as '{token}' in this process: a graph with py_func runs only in "
                "the process that built it, while that graph is alive",
            )
        try:
            result = function(*args)
        except BaseException as e:
            raise _translate(context, e) from e
        return _outputs(context, token, result, Tout)

    return _threads.submit(call)


def _outputs(context: Any, token: str, result: Any, dtypes: tuple[np.dtype, ...]) -> list[np.ndarray]:
    """What a function returned as arrays of the promised types. InvalidArgumentError where it isn't that."""
    if result is None:
        result = []
    values = list(result) if isinstance(result, list | tuple) else [result]
    if len(values) != len(dtypes):
        raise context.fail(
            errors.InvalidArgumentError,
            f"{token} returns {len(values)} values, but expects to see {len(dtypes)} values.",
        )
    arrays = []
    for i, (value, wanted) in enumerate(zip(values, dtypes, strict=True)):
        try:
            array = _as_array(value)
        except (TypeError, ValueError) as e:
            raise context.fail(errors.InvalidArgumentError, f"{i}-th value returned by {token}: {e}") from e
        if array.dtype != wanted:
            raise context.fail(
                errors.InvalidArgumentError,
                f"{i}-th value returned by {token} is {_type_name(array.dtype)}, but expects "
                f"{_type_name(wanted)}",
            )
        arrays.append(array)
    return arrays


def _as_array(value: Any) -> np.ndarray:
    """A value as an array of its own; strings as bytes in an object array."""
    array = np.array(value, order="C")
    if array.dtype.kind in "SU":  # NumPy pads these with zeros, so start from the value itself
        array = np.array(value, dtype=object)
    if array.dtype != object:
        return array
    flat = array.reshape(-1)
    for i, item in enumerate(flat):
        if isinstance(item, str):
            flat[i] = item.encode()
        elif not isinstance(item, bytes):
            raise TypeError(f"Unsupported object type {type(item).__name__}")
    return array


_TYPE_NAMES = {"float64": "double", "float32": "float", "float16": "half", "object": "string"}


def _type_name(dtype: np.dtype) -> str:
    return _TYPE_NAMES.get(dtype.name, dtype.name)


def _unknown_shapes(c: ShapeContext) -> list[Shape]:
    return [None] * len(c.op._outputs)


def _define(name: str, stateful: bool) -> None:
    define_op(
        name,
        inputs="input: Tin",
        outputs="output: Tout",
        attrs="token: string, Tin: list(type) >= 0, Tout: list(type) >= 0",
        shape=_unknown_shapes,
        kernel=asynchronous(_py_func_kernel),
        stateful=stateful,
        gradient=NotDifferentiable("nobody knows what a Python function computes"),
        doc="What a Python function of this process makes of its inputs, as NumPy arrays.",
    )


_define("PyFunc", stateful=True)
_define("PyFuncStateless", stateful=False)
