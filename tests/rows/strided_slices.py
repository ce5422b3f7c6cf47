"""Rows of ops/strided_slices.py."""

import numpy as np
from row import Row, floats, ints

WORDS = np.array([[b"a", b"bc"], [b"", b"d"]], object)


def vec(*values, dtype=np.int32):
    return np.array(values, dtype).reshape(len(values))


def slice_row(x, start, stop, step, id, fed=False, dtype=np.int32, error=None, **masks):
    bounds = [vec(*v, dtype=dtype) for v in (start, stop, step)]
    attrs = {f"{k}_mask": v for k, v in masks.items()}
    return Row("StridedSlice", [x, *bounds], attrs, id=id, const=(3,) if fed else (1, 2, 3), error=error)


def adjoint_row(shape, start, stop, step, dy, id, **masks):
    bounds = [vec(*v) for v in (shape, start, stop, step)]
    attrs = {f"{k}_mask": v for k, v in masks.items()}
    return Row("StridedSliceGrad", [*bounds, dy], attrs, id=id, const=(0, 1, 2, 3))


X = floats(4, 5)

ROWS = [
    slice_row(X, [1, 0], [3, 4], [1, 2], "plain"),
    slice_row(X, [1], [2], [1], "index", shrink_axis=1),
    slice_row(X, [-1], [0], [1], "last", shrink_axis=1),
    slice_row(X, [2, 0], [3, 2], [1, 1], "index_range", shrink_axis=1),
    slice_row(X, [0, 2], [0, 3], [1, 1], "column", begin=1, end=1, shrink_axis=2),
    slice_row(X, [0, 2], [0, 3], [1, 1], "column_fed", fed=True, begin=1, end=1, shrink_axis=2),
    slice_row(X, [-2], [-1], [1], "index_fed", fed=True, shrink_axis=1),
    slice_row(X, [1], [3], [1], "range_fed", fed=True),
    slice_row(X, [-1, 0], [0, 9], [-1, 2], "backwards", end=1),
    slice_row(X, [3, 4], [0, 0], [-2, -3], "backwards_steps"),
    slice_row(X, [-9, 1], [9, -9], [1, -1], "clamped"),
    slice_row(X, [3], [1], [1], "empty"),
    slice_row(X, [0, 0, 0], [0, 0, 0], [1, 1, 1], "new_axes", new_axis=5, begin=2, end=2),
    slice_row(floats(2, 3, 4), [0, 1], [0, 3], [1, 1], "ellipsis", ellipsis=1),
    slice_row(floats(2, 3, 4), [1, 0, 0, 2], [2, 0, 0, 3], [1, 1, 1, 1], "mixed", ellipsis=2, new_axis=4, shrink_axis=9),
    slice_row(floats(2, 3, 4), [0, 0, 0, 0], [2, 3, 4, 0], [1, 1, 1, 1], "ellipsis_of_none", ellipsis=8),
    slice_row(floats(), [0], [0], [1], "scalar_new", new_axis=1),
    slice_row(ints(6), [1], [5], [3], "int64", dtype=np.int64),
    slice_row(WORDS, [0, -1], [0, 0], [1, 1], "strings", begin=1, end=1, shrink_axis=2),
    slice_row(floats(0, 3), [0], [2], [1], "of_empty"),
    slice_row(X, [0], [0], [0], "zero_stride", error="ValueError"),
    slice_row(X, [4], [5], [1], "out", shrink_axis=1, error="ValueError"),
    slice_row(X, [4], [5], [1], "run_out", fed=True, shrink_axis=1, error="InvalidArgumentError"),
    slice_row(X, [0, 0, 0], [1, 1, 1], [1, 1, 1], "too_many", error="ValueError"),
    slice_row(X, [2], [1], [-1], "shrink_backwards", shrink_axis=1, error="ValueError"),
    adjoint_row([4, 5], [1, 0], [3, 4], [1, 2], floats(2, 2), "plain"),
    adjoint_row([4, 5], [-1, 0], [0, 9], [-1, 2], floats(4, 3), "backwards", end=1),
    adjoint_row([4, 5], [1], [2], [1], floats(5), "index", shrink_axis=1),
    adjoint_row([4], [3], [1], [1], floats(0), "empty"),
    adjoint_row([2, 3], [0, 0], [0, 0], [1, 1], floats(1, 2, 3), "new_axis", new_axis=1, begin=2, end=2),
]
