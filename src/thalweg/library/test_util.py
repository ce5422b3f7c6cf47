"""tf.test: TestCase, main, and where tests keep their files."""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import unittest
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from absl import app as absl_app
from google.protobuf import text_format

from thalweg.base.errors import OpError
from thalweg.client.device_lib import list_local_devices
from thalweg.client.session import Session, get_default_session
from thalweg.graph.composite import SparseTensorValue
from thalweg.graph.convert import get_default_graph, reset_default_graph
from thalweg.graph.operation import Tensor

_temp_dir: list[str] = []


def get_temp_dir() -> str:
    """A folder for the files of this process's tests."""
    if not _temp_dir:
        _temp_dir.append(tempfile.mkdtemp(prefix="thalweg-test-"))
    return _temp_dir[0]


def main(argv: list[str] | None = None) -> None:
    """Runs the test cases of `__main__`."""
    absl_app.run(lambda args: unittest.main(argv=args), argv=argv)


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether steps can run on a GPU.

    cuda_only, min_cuda_compute_capability: XLA serves whatever GPU JAX has, so these don't matter.
    """
    del cuda_only, min_cuda_compute_capability
    return gpu_device_name() != ""


def is_built_with_cuda() -> bool:
    """Whether this is a CUDA build: kernels come from XLA, there is none."""
    return False


def gpu_device_name() -> str:
    """The name of the first GPU, as "/device:GPU:0", or ""."""
    return next((d.name for d in list_local_devices() if d.device_type == "GPU"), "")


def assert_equal_graph_def(actual: Any, expected: Any, checkpoint_v2: bool = False) -> None:
    """AssertionError where two GraphDefs differ, but for the order of nodes and the versions."""
    del checkpoint_v2
    a = {n.name: text_format.MessageToString(n) for n in actual.node}
    b = {n.name: text_format.MessageToString(n) for n in expected.node}
    if a.keys() != b.keys():
        raise AssertionError(
            f"only in actual: {sorted(a.keys() - b.keys())}; only expected: {sorted(b.keys() - a.keys())}"
        )
    for name, text in a.items():
        if text != b[name]:
            raise AssertionError(f"node '{name}' differs:\n{text}\nexpected:\n{b[name]}")


class TestCase(unittest.TestCase):
    """unittest.TestCase with sessions, NumPy comparisons, and a fresh default graph for each test."""

    def setUp(self) -> None:
        super().setUp()
        self._cached_session: Any = None
        random.seed(87654321)
        np.random.seed(87654321)
        reset_default_graph()
        get_default_graph().seed = 87654321

    def tearDown(self) -> None:
        if self._cached_session is not None:
            self._cached_session.close()
            self._cached_session = None
        super().tearDown()

    def get_temp_dir(self) -> str:
        """A folder of this test's own."""
        path = os.path.join(get_temp_dir(), self.id())
        os.makedirs(path, exist_ok=True)
        return path

    @contextlib.contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Any]:
        """A new session, default for the block, closed after it."""
        del use_gpu, force_gpu
        with Session(graph=graph, config=config) as session:
            yield session

    @contextlib.contextmanager
    def cached_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Any]:
        """The test's one session, kept until the test ends."""
        del use_gpu, force_gpu
        if self._cached_session is None:
            self._cached_session = Session(graph=graph, config=config)
        with self._cached_session.graph.as_default(), self._cached_session.as_default():
            yield self._cached_session

    def test_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Any:
        """As `session` where a graph or config is given, else as `cached_session` (TF 1.x's rule)."""
        if graph is not None or config is not None:
            return self.session(graph, config, use_gpu, force_gpu)
        return self.cached_session(None, None, use_gpu, force_gpu)

    #: not a test, whatever its name says
    test_session.__test__ = False  # type: ignore[attr-defined]

    def evaluate(self, tensors: Any) -> Any:
        """The values of a nest of tensors, by the default session."""
        session = get_default_session() or self._cached_session
        if session is None:
            raise ValueError("evaluate needs a default session")
        return session.run(tensors)

    def _value(self, a: Any) -> Any:
        if isinstance(a, Tensor) or hasattr(a, "_as_graph_element"):
            return self.evaluate(a)
        if isinstance(a, SparseTensorValue):
            return a
        return np.asarray(a) if not isinstance(a, Mapping) else a

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Two nests of arrays agree within tolerances; NaN equals NaN."""
        if isinstance(a, Mapping):
            self.assertEqual(set(a), set(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
            return
        if isinstance(a, list | tuple) and any(isinstance(x, list | tuple | np.ndarray | Tensor) for x in a):
            try:
                a, b = np.array(a, dtype=float), np.array(b, dtype=float)
            except (TypeError, ValueError):
                self.assertEqual(len(a), len(b), msg)
                for x, y in zip(a, b, strict=True):
                    self.assertAllClose(x, y, rtol, atol, msg)
                return
        a, b = self._value(a), self._value(b)
        half = {np.dtype(np.float16)} & {a.dtype, b.dtype}
        if half or "bfloat16" in (a.dtype.name, b.dtype.name):
            rtol, atol = max(rtol, 1e-2), max(atol, 1e-2)
            a, b = a.astype(np.float32), b.astype(np.float32)
        self.assertEqual(a.shape, b.shape, msg)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=msg or "")

    def assertAllCloseAccordingToType(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, float_rtol: float = 1e-6,
        float_atol: float = 1e-6, half_rtol: float = 1e-3, half_atol: float = 1e-3, msg: str | None = None,
    ) -> None:  # fmt: skip
        """assertAllClose with the tolerances of the coarser type."""
        a, b = self._value(a), self._value(b)
        names = (a.dtype.name, b.dtype.name)
        if "float16" in names or "bfloat16" in names:
            rtol, atol = max(rtol, half_rtol), max(atol, half_atol)
        elif "float32" in names:
            rtol, atol = max(rtol, float_rtol), max(atol, float_atol)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Two arrays are the same."""
        a, b = self._value(a), self._value(b)
        self.assertEqual(a.shape, b.shape, msg)
        np.testing.assert_array_equal(a, b, err_msg=msg or "")

    def assertNotAllClose(self, a: Any, b: Any, **kwargs: Any) -> None:
        """Two arrays differ by more than the tolerances."""
        try:
            self.assertAllClose(a, b, **kwargs)
        except AssertionError:
            return
        raise AssertionError("The two values are close at all elements")

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Two numbers differ by at most err."""
        self.assertTrue(
            f1 == f2 or abs(f1 - f2) <= err, f"{f1} != {f2} +/- {err}{f' ({msg})' if msg else ''}"
        )

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:
        """Two lists of numbers differ by at most err each."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for a, b in zip(farray1, farray2, strict=True):
            self.assertNear(float(a), float(b), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:
        """The distance of two arrays is below err."""
        self.assertLess(float(np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2))), err, msg)

    def assertShapeEqual(self, np_array: Any, tf_tensor: Tensor, msg: str | None = None) -> None:
        """A tensor's static shape is that of an array."""
        self.assertAllEqual(np_array.shape, tf_tensor.get_shape().as_list(), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """A value's element type."""
        self.assertEqual(
            self._value(target).dtype, np.dtype(getattr(expected_dtype, "as_numpy_dtype", expected_dtype))
        )

    def assertAllInRange(self, target: Any, lower_bound: float, upper_bound: float) -> None:
        """Every element is between the bounds."""
        value = self._value(target)
        self.assertTrue(bool(np.all((value >= lower_bound) & (value <= upper_bound))))

    def assertProtoEquals(
        self, expected_message_maybe_ascii: Any, message: Any, msg: str | None = None
    ) -> None:
        """Two messages are the same; the first may be text."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, str):
            expected = text_format.Parse(expected, type(message)())
        self.assertEqual(expected, message, msg)

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:
        """A text begins so."""
        self.assertTrue(
            actual.startswith(expected_start), msg or f"{actual!r} does not start with {expected_start!r}"
        )

    @contextlib.contextmanager
    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Iterator[None]:
        """The block raises a tf.errors.OpError whose text matches."""
        with self.assertRaisesRegex(OpError, expected_err_re_or_predicate):
            yield

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: type[BaseException], predicate: Any
    ) -> Iterator[None]:
        """The block raises this exception, which satisfies a predicate or matches a regular expression."""
        if isinstance(predicate, str):
            with self.assertRaisesRegex(exception_type, predicate):
                yield
            return
        with self.assertRaises(exception_type) as caught:
            yield
        self.assertTrue(predicate(caught.exception), caught.exception)
