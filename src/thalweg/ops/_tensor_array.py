"""The TensorArray itself: a list of tensors that a step writes and reads. Private to ops.

Source: TensorFlow's tensor_array.h and tensor_array_ops.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.kernel.step_resource import StepResource


class _Element:
    """One place of an array."""

    __slots__ = ("cleared", "read", "shape", "value")

    def __init__(self) -> None:
        self.value: np.ndarray | None = None
        #: of a gradient's element: what the forward element's value has
        self.shape: Shape = None
        self.read = False
        self.cleared = False


class Array(StepResource):
    """A TensorArray. Thread-safe. Its methods raise ValueError with the text of what is wrong.

    aggregates: whether a second write to a place adds to the first (a gradient's array).
    """

    __slots__ = (
        "_aggregates",
        "_clear_after_read",
        "_closed",
        "_dynamic",
        "_elements",
        "_gradients",
        "_identical",
        "_lock",
        "dtype",
        "element_shape",
        "name",
    )

    def __init__(
        self,
        name: str,
        dtype: np.dtype,
        size: int,
        element_shape: Shape,
        identical: bool,
        dynamic: bool,
        clear_after_read: bool,
        aggregates: bool = False,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.element_shape = element_shape
        self._elements = [_Element() for _ in range(size)]
        self._identical = identical
        self._dynamic = dynamic
        self._clear_after_read = clear_after_read
        self._aggregates = aggregates
        self._closed = False
        self._gradients: dict[tuple[str, tuple[int, ...]], Array] = {}
        self._lock = threading.RLock()

    def size(self) -> int:
        """The number of places."""
        with self._lock:
            self._check_open()
            return len(self._elements)

    def close(self) -> None:
        """Drops all values."""
        with self._lock:
            self._closed = True
            self._elements.clear()

    def write(self, index: int, value: np.ndarray) -> None:
        """Puts a value into a place; a gradient's array adds it to what is there."""
        with self._lock:
            self._check_open()
            self._check_write(index, value)
            if index >= len(self._elements):
                self._elements.extend(_Element() for _ in range(index + 1 - len(self._elements)))
            element = self._elements[index]
            if element.read:
                raise self._bad(
                    f"Could not write to TensorArray index {index} because it has already been read."
                )
            if element.value is None:
                element.value = value
            elif not self._aggregates:
                raise self._bad(
                    f"Could not write to TensorArray index {index} because it has already been written to."
                )
            elif element.value.shape != value.shape:
                raise self._bad(
                    f"Could not aggregate to TensorArray index {index} because the existing shape is "
                    f"{list(element.value.shape)} but the new input shape is {list(value.shape)}."
                )
            else:
                element.value = np.asarray(element.value + value)

    def write_many(self, indices: Sequence[int], values: Sequence[np.ndarray]) -> None:
        """Puts several values into places."""
        with self._lock:
            for index, value in zip(indices, values, strict=True):
                self.write(index, value)

    def _check_write(self, index: int, value: np.ndarray) -> None:
        if index < 0 or (not self._dynamic and index >= len(self._elements)):
            raise self._bad(
                f"Tried to write to index {index} but array is not resizeable and size is: "
                f"{len(self._elements)}"
            )
        if value.dtype != self.dtype:
            raise self._bad(
                f"Could not write to TensorArray index {index} because the value dtype is {value.dtype.name} "
                f"but TensorArray dtype is {self.dtype.name}."
            )
        if not shapes.is_compatible(self.element_shape, value.shape):
            raise self._bad(
                f"Could not write to TensorArray index {index} because the value shape is "
                f"{list(value.shape)} which is incompatible with the TensorArray's inferred element shape: "
                f"{shapes.format_shape(self.element_shape)} (consider setting infer_shape=False)."
            )
        if self._identical and not self._aggregates:
            self.element_shape = value.shape

    def read(self, index: int) -> np.ndarray:
        """The value of a place, which is empty after that (clear_after_read)."""
        with self._lock:
            self._check_open()
            if not 0 <= index < len(self._elements):
                raise self._bad(
                    f"Tried to read from index {index} but array size is: {len(self._elements)}"
                )
            element = self._elements[index]
            if element.cleared:
                raise self._bad(
                    f"Could not read index {index} twice because it was cleared after a previous read "
                    "(perhaps try setting clear_after_read = false?)."
                )
            value = element.value if element.value is not None else self._nothing(index, element)
            element.read = True
            if self._clear_after_read:
                element.value = None
                element.cleared = True
            return value

    def _nothing(self, index: int, element: _Element) -> np.ndarray:
        """What a place that nobody wrote to holds: zeros, where the shape is known."""
        for shape in (element.shape, self.element_shape):
            if shape is not None and None not in shape:
                return zeros(shape, self.dtype)
        raise self._bad(
            f"Could not read from TensorArray index {index}.  Furthermore, the element shape is not fully "
            f"defined: {shapes.format_shape(self.element_shape)}.  It is possible you are working with a "
            "resizeable TensorArray and stop_gradients is not allowing the gradients to be written.  If you "
            "set the full element_shape property on the forward TensorArray, the proper all-zeros tensor "
            "will be returned instead of incurring this error."
        )

    def read_many(self, indices: Sequence[int]) -> list[np.ndarray]:
        """The values of several places."""
        with self._lock:
            return [self.read(i) for i in indices]

    def gradient(self, source: str, prepend: tuple[int, ...]) -> Array:
        """The array of this one's gradients in the call of `gradients` named source; made when first asked.

        prepend: dimensions that its elements have before those of this array's elements.
        """
        with self._lock:
            self._check_open()
            made = self._gradients.get((source, prepend))
            if made is None:
                element = None if self.element_shape is None else (*prepend, *self.element_shape)
                made = Array(
                    f"{self.name}@{source}",
                    self.dtype,
                    len(self._elements),
                    element,
                    self._identical,
                    False,
                    True,
                    aggregates=True,
                )
                for mine, other in zip(self._elements, made._elements, strict=True):
                    shape = mine.shape if mine.value is None else mine.value.shape
                    other.shape = None if shape is None else (*prepend, *shape)
                self._gradients[source, prepend] = made
            return made

    @property
    def resizable(self) -> bool:
        """Whether writing makes it longer."""
        return self._dynamic

    def _check_open(self) -> None:
        if self._closed:
            raise self._bad("has already been closed.")

    def _bad(self, message: str) -> ValueError:
        return ValueError(f"TensorArray {self.name}: {message}")


def zeros(shape: Sequence[Any], dtype: np.dtype) -> np.ndarray:
    """Zeros; of strings, empty ones."""
    return np.full(shape, b"", object) if dtype.kind == "O" else np.zeros(shape, dtype)
