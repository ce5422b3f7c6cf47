"""Convolutions, pools and batch norm against loops over windows written in NumPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from thalweg.ops import _batch_norm as bn
from thalweg.ops import _convolution as conv
from thalweg.ops import _pooling as pool
from thalweg.ops._windows import conv_output_shape, pool_output_shape

RNG = np.random.default_rng(0)


def run(formula, *args, **how):
    """formula(*args, **how) as one executable; tuples among args are static sizes."""
    static = tuple(i for i, a in enumerate(args) if isinstance(a, tuple))
    return jax.jit(lambda *arrays: formula(*arrays, **how), static_argnums=static)(*args)


def normal(*shape):
    return RNG.standard_normal(shape)


def same(size, window, stride, dilation=1):
    out = -(-size // stride)
    total = max((out - 1) * stride + (window - 1) * dilation + 1 - size, 0)
    return out, total // 2, total - total // 2


def axis(size, window, stride, padding, dilation=1, pad=(0, 0)):
    """(windows, low) along one axis, as TensorFlow's documentation gives them."""
    if padding == "SAME":
        out, low, _ = same(size, window, stride, dilation)
        return out, low
    return (size + sum(pad) - (window - 1) * dilation - 1) // stride + 1, pad[0]


def pairs(x_shape, w_shape, stride, padding, dilation=1, explicit=()):
    """(output position, tap, input position) of every product of a 2-D convolution, padding left out."""
    pads = (explicit[2:4], explicit[4:6]) if explicit else ((0, 0), (0, 0))
    (oh, lh), (ow, lw) = (
        axis(x_shape[1 + a], w_shape[a], stride, padding, dilation, pads[a]) for a in (0, 1)
    )
    for y, x, i, j in itertools.product(range(oh), range(ow), range(w_shape[0]), range(w_shape[1])):
        at = y * stride + i * dilation - lh, x * stride + j * dilation - lw
        if 0 <= at[0] < x_shape[1] and 0 <= at[1] < x_shape[2]:
            yield (y, x), (i, j), at


def full_filter(w, channels):
    """A grouped filter as a dense one, with zeros between groups."""
    groups, out = channels // w.shape[2], w.shape[3]
    dense = np.zeros((*w.shape[:2], channels, out))
    for g in range(groups):
        rows, cols = (
            slice(g * w.shape[2], (g + 1) * w.shape[2]),
            slice(g * out // groups, (g + 1) * out // groups),
        )
        dense[:, :, rows, cols] = w[..., cols]
    return dense


def reference(x, w, dy, **how):
    """(y, dx, dw of the dense filter)."""
    y, dx, dw = np.zeros(dy.shape), np.zeros(x.shape), np.zeros(w.shape)
    for (a, b), (i, j), (u, v) in pairs(x.shape, w.shape, **how):
        y[:, a, b] += x[:, u, v] @ w[i, j]
        dx[:, u, v] += dy[:, a, b] @ w[i, j].T
        dw[i, j] += x[:, u, v].T @ dy[:, a, b]
    return y, dx, dw


CONVS = [  # x, filter, stride, padding, dilation, explicit paddings
    ((2, 8, 9, 3), (3, 3, 3, 4), 1, "SAME", 1, ()),
    ((2, 8, 9, 3), (3, 3, 3, 4), 2, "SAME", 1, ()),
    ((2, 9, 7, 3), (3, 2, 3, 4), 2, "VALID", 1, ()),
    ((2, 9, 9, 4), (3, 3, 4, 6), 1, "SAME", 2, ()),
    ((2, 8, 8, 5), (1, 1, 5, 4), 1, "SAME", 1, ()),  # a dot
    ((2, 8, 8, 5), (1, 1, 5, 4), 2, "SAME", 1, ()),
    ((3, 12, 13, 1), (5, 5, 1, 8), 1, "SAME", 1, ()),  # patches
    ((3, 12, 13, 1), (3, 5, 1, 8), 2, "VALID", 1, ()),
    ((2, 9, 9, 1), (3, 3, 1, 16), 1, "SAME", 2, ()),
    ((2, 8, 9, 6), (3, 3, 3, 4), 1, "SAME", 1, ()),  # groups
    ((2, 8, 9, 6), (3, 3, 2, 6), 2, "VALID", 1, ()),
    ((2, 8, 9, 3), (3, 3, 3, 4), 2, "EXPLICIT", 1, (0, 0, 1, 2, 2, 0, 0, 0)),
    ((2, 8, 9, 3), (2, 2, 3, 4), 3, "VALID", 1, ()),  # elements no window sees
    ((0, 8, 9, 3), (3, 3, 3, 4), 1, "SAME", 1, ()),
]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("x_shape, w_shape, stride, padding, dilation, explicit", CONVS)
def test_conv2d_and_its_gradients(x_shape, w_shape, stride, padding, dilation, explicit, data_format):
    how = dict(
        strides=(1, stride, stride, 1),
        padding=padding,
        explicit_paddings=explicit,
        dilations=(1, dilation, dilation, 1),
    )
    x, w = normal(*x_shape), normal(*w_shape)
    shape = conv_output_shape(x_shape, w_shape, **how)
    dy = normal(*shape)
    y, dx, dw = reference(
        x,
        full_filter(w, x_shape[3]),
        dy,
        stride=stride,
        padding=padding,
        dilation=dilation,
        explicit=explicit,
    )
    groups, per, last = x_shape[3] // w_shape[2], w_shape[2], w_shape[3]
    dw = np.concatenate(
        [
            dw[:, :, g * per : (g + 1) * per, g * last // groups : (g + 1) * last // groups]
            for g in range(groups)
        ],
        3,
    )

    def there(a):
        return jnp.asarray(np.moveaxis(a, 3, 1) if data_format == "NCHW" else a, jnp.float32)

    def back(a):
        return np.moveaxis(np.asarray(a), 1, 3) if data_format == "NCHW" else np.asarray(a)

    how["data_format"] = data_format
    if data_format == "NCHW":
        for name in ("strides", "dilations"):
            how[name] = tuple(how[name][i] for i in (0, 3, 1, 2))
        how["explicit_paddings"] = explicit and (*explicit[:2], *explicit[6:], *explicit[2:6])
    close = dict(rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(back(run(conv.conv2d, there(x), jnp.float32(w), **how)), y, **close)
    np.testing.assert_allclose(
        back(run(conv.conv2d_backprop_input, there(x).shape, jnp.float32(w), there(dy), **how)), dx, **close
    )
    np.testing.assert_allclose(
        run(conv.conv2d_backprop_filter, there(x), w_shape, there(dy), **how), dw, **close
    )


@pytest.mark.parametrize("dtype, tolerance", [("float16", 2e-3), ("bfloat16", 1e-2), ("float64", 1e-12)])
def test_conv2d_keeps_the_type_and_sums_in_a_wide_one(dtype, tolerance):
    how = dict(strides=(1, 1, 1, 1), padding="SAME")
    with jax.enable_x64(True):
        x, w = jnp.asarray(normal(2, 6, 6, 8), dtype), jnp.asarray(normal(3, 3, 8, 4), dtype)
        dy = jnp.asarray(normal(2, 6, 6, 4), dtype)
        want = reference(*(np.asarray(a, np.float64) for a in (x, w, dy)), stride=1, padding="SAME")
        got = (
            run(conv.conv2d, x, w, **how),
            run(conv.conv2d_backprop_input, x.shape, w, dy, **how),
            run(conv.conv2d_backprop_filter, x, w.shape, dy, **how),
        )
        for g, r in zip(got, want, strict=True):
            assert g.dtype == x.dtype
            np.testing.assert_allclose(np.asarray(g, np.float64), r, atol=tolerance * np.abs(r).max())


@pytest.mark.parametrize(
    "x_shape, window, multiplier, stride, padding, dilation",
    [
        ((2, 8, 9, 3), 3, 1, 1, "SAME", 1),
        ((2, 8, 9, 3), 3, 2, 2, "SAME", 1),
        ((2, 9, 8, 3), 3, 1, 2, "VALID", 1),
        ((2, 9, 9, 2), 6, 2, 1, "SAME", 1),
        ((2, 9, 9, 3), 2, 2, 1, "VALID", 3),
    ],
)
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_depthwise_and_its_gradients(x_shape, window, multiplier, stride, padding, dilation, data_format):
    n, channels = window, x_shape[3]
    x, w = normal(*x_shape), normal(n, n, channels, multiplier)
    dense = full_filter(w.reshape(n, n, 1, -1), channels)
    how = dict(strides=(1, stride, stride, 1), padding=padding, dilations=(1, dilation, dilation, 1))
    dy = normal(*conv_output_shape(x_shape, w.shape, depthwise=True, **how))
    y, dx, dw = reference(x, dense, dy, stride=stride, padding=padding, dilation=dilation)
    dw = np.stack([dw[:, :, c, c * multiplier : (c + 1) * multiplier] for c in range(channels)], 2)
    if data_format == "NCHW":
        how["strides"], how["dilations"] = (1, 1, stride, stride), (1, 1, dilation, dilation)
        x, dy, y, dx = (np.moveaxis(a, 3, 1) for a in (x, dy, y, dx))
    how["data_format"] = data_format
    x, w, dy = (jnp.float32(a) for a in (x, w, dy))
    np.testing.assert_allclose(run(conv.depthwise_conv2d, x, w, **how), y, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        run(conv.depthwise_conv2d_backprop_input, x.shape, w, dy, **how), dx, rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(
        run(conv.depthwise_conv2d_backprop_filter, x, w.shape, dy, **how), dw, rtol=1e-4, atol=1e-4
    )


def windows_of(shape, kh, kw, stride, padding, explicit=()):
    """{(y, x): [input positions in row-major order]}"""
    found = {}
    for at, _, pos in pairs(shape, (kh, kw), stride, padding, explicit=explicit):
        found.setdefault(at, []).append(pos)
    return found


POOLS = [  # size, window, stride, padding, explicit paddings
    ((8, 8), (2, 2), 2, "VALID", ()),
    ((7, 9), (2, 2), 2, "SAME", ()),
    ((7, 9), (2, 2), 2, "VALID", ()),
    ((9, 8), (3, 3), 2, "SAME", ()),
    ((7, 7), (3, 2), 1, "SAME", ()),
    ((10, 9), (2, 2), 3, "VALID", ()),
    ((12, 12), (6, 6), 6, "VALID", ()),
    ((10, 10), (5, 5), 2, "SAME", ()),
    ((7, 7), (7, 7), 1, "VALID", ()),
    ((8, 8), (3, 3), 2, "EXPLICIT", (0, 0, 1, 2, 2, 0, 0, 0)),
    ((11, 11), (3, 3), 5, "VALID", ()),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
@pytest.mark.parametrize("size, window, stride, padding, explicit", POOLS)
def test_max_pool_gives_its_gradient_to_the_first_maximum(size, window, stride, padding, explicit, dtype):
    x = np.maximum(np.round(normal(2, *size, 3)), 0)  # many ties, many zeros, as after a relu
    how = dict(
        ksize=(1, *window, 1), strides=(1, stride, stride, 1), padding=padding, explicit_paddings=explicit
    )
    found = windows_of(x.shape, *window, stride, padding, explicit)
    shape = pool_output_shape(x.shape, **how)
    dy, ddx = RNG.integers(1, 9, shape), RNG.integers(1, 9, x.shape)
    y, picked, flat, dx = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64), np.zeros(x.shape)
    for (a, b), places in found.items():
        for n, c in itertools.product(range(2), range(3)):
            u, v = max(places, key=lambda at: x[n, *at, c])  # max keeps the first
            y[n, a, b, c], picked[n, a, b, c] = x[n, u, v, c], ddx[n, u, v, c]
            flat[n, a, b, c] = (u * size[1] + v) * 3 + c
            dx[n, u, v, c] += dy[n, a, b, c]
    x, dy, ddx = (jnp.asarray(v, dtype) for v in (x, dy, ddx))
    out = run(pool.max_pool, x, **how)
    np.testing.assert_array_equal(np.asarray(out, float), y)
    np.testing.assert_array_equal(np.asarray(run(pool.max_pool_grad, x, out, dy, **how), float), dx)
    np.testing.assert_array_equal(np.asarray(run(pool.max_pool_grad_grad, x, out, ddx, **how), float), picked)
    if padding != "EXPLICIT":
        del how["explicit_paddings"]
        got = run(pool.max_pool_with_argmax, x, index_dtype=np.int32, **how)
        np.testing.assert_array_equal(got[1], flat)


@pytest.mark.parametrize("size, window, stride, padding", [p[:4] for p in POOLS if p[3] != "EXPLICIT"])
def test_avg_pool_divides_by_the_elements_that_are_there(size, window, stride, padding):
    x = normal(2, *size, 3)
    how = dict(ksize=(1, *window, 1), strides=(1, stride, stride, 1), padding=padding)
    dy = normal(*pool_output_shape(x.shape, **how))
    y, dx = np.zeros(dy.shape), np.zeros(x.shape)
    for (a, b), places in windows_of(x.shape, *window, stride, padding).items():
        y[:, a, b] = np.mean([x[:, u, v] for u, v in places], 0)
        for u, v in places:
            dx[:, u, v] += dy[:, a, b] / len(places)
    np.testing.assert_allclose(run(pool.avg_pool, jnp.float32(x), **how), y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        run(pool.avg_pool_grad, x.shape, jnp.float32(dy), **how), dx, rtol=1e-5, atol=1e-5
    )


def test_pools_take_channels_first_channel_windows_and_three_dimensions():
    x = normal(2, 4, 6, 4, 3).astype(np.float32)
    want = x.reshape(2, 2, 2, 3, 2, 2, 2, 3).max((2, 4, 6))
    np.testing.assert_array_equal(
        run(
            pool.max_pool,
            jnp.asarray(x),
            ksize=(1, 2, 2, 2, 1),
            strides=(1, 2, 2, 2, 1),
            padding="SAME",
            data_format="NDHWC",
        ),
        want,
    )
    y = x[:, 0]
    np.testing.assert_array_equal(
        run(pool.max_pool, jnp.asarray(y), ksize=(1, 1, 1, 3), strides=(1, 1, 1, 3), padding="VALID"),
        y.max(3, keepdims=True),
    )
    np.testing.assert_array_equal(
        run(
            pool.max_pool,
            jnp.asarray(np.moveaxis(y, 3, 1)),
            ksize=(1, 1, 2, 2),
            strides=(1, 1, 2, 2),
            padding="SAME",
            data_format="NCHW",
        ),
        np.moveaxis(y.reshape(2, 3, 2, 2, 2, 3).max((2, 4)), 3, 1),
    )


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_fused_batch_norm(data_format):
    x, dy = normal(4, 5, 6, 7) + 3, normal(4, 5, 6, 7)
    axes, lift = (
        ((0, 1, 2), lambda v: v) if data_format == "NHWC" else ((0, 2, 3), lambda v: v[:, None, None])
    )
    c = x.shape[3 if data_format == "NHWC" else 1]
    scale, offset, mean, variance = normal(c), normal(c), normal(c), np.abs(normal(c))
    n, m, v = x.size // c, x.mean(axes), x.var(axes)
    f = [jnp.float32(a) for a in (x, scale, offset, mean, variance)]
    y, bm, bv, r1, r2, r3 = run(
        bn.fused_batch_norm, *f, epsilon=1e-3, exponential_avg_factor=0.25, data_format=data_format
    )
    hat = (x - lift(m)) / lift(np.sqrt(v + 1e-3))
    for got, want in (
        (y, hat * lift(scale) + lift(offset)),
        (bm, 0.75 * mean + 0.25 * m),
        (bv, 0.75 * variance + 0.25 * v * n / (n - 1)),
        (r1, m),
        (r2, v),
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert r3.shape == (0,)
    got = run(
        bn.fused_batch_norm_grad, jnp.float32(dy), f[0], f[1], r1, r2, epsilon=1e-3, data_format=data_format
    )
    dx = lift(scale / np.sqrt(v + 1e-3)) * (dy - lift(dy.mean(axes)) - hat * lift((dy * hat).mean(axes)))
    for g, want in zip(got, (dx, (dy * hat).sum(axes), dy.sum(axes)), strict=True):
        np.testing.assert_allclose(g, want, rtol=1e-4, atol=1e-4)
    y, *stats, _ = run(bn.fused_batch_norm, *f, epsilon=1e-3, data_format=data_format, is_training=False)
    np.testing.assert_allclose(
        y,
        (x - lift(mean)) / lift(np.sqrt(variance + 1e-3)) * lift(scale) + lift(offset),
        rtol=1e-4,
        atol=1e-4,
    )
    for got, want in zip(stats, (mean, variance, mean, variance), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_fused_batch_norm_with_little_data():
    one = jnp.ones((3,), jnp.float32)
    none = jnp.zeros((0,), jnp.float32)
    y, mean, variance, *_ = run(bn.fused_batch_norm, jnp.ones((1, 1, 1, 3)), one * 2, one, none, none)
    assert y.tolist() == [[[[1, 1, 1]]]] and mean.tolist() == [1] * 3 and variance.tolist() == [0] * 3
    _, mean, *_ = run(bn.fused_batch_norm, jnp.ones((0, 2, 2, 3)), one, one, none, none)
    assert np.isnan(mean).all()


@pytest.mark.parametrize(
    "x, w, how, want",
    [
        (
            (None, 28, None, 1),
            (5, 5, 1, 32),
            dict(strides=(1, 2, 2, 1), padding="SAME"),
            (None, 14, None, 32),
        ),
        (
            (8, 9, 9, None),
            (3, 3, None, None),
            dict(strides=(1, 1, 1, 1), padding="VALID", dilations=(1, 2, 2, 1)),
            (8, 5, 5, None),
        ),
        (
            (8, 9, 9, 3),
            (3, 3, 3, 2),
            dict(strides=(1, 1, 1, 1), padding="VALID", depthwise=True),
            (8, 7, 7, 6),
        ),
        (
            (8, 3, 9, 9),
            (3, 3, 3, 4),
            dict(strides=(1, 1, 3, 3), padding="VALID", data_format="NCHW"),
            (8, 4, 3, 3),
        ),
    ],
)
def test_conv_output_shape(x, w, how, want):
    assert conv_output_shape(x, w, **how) == want


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: conv_output_shape((1, 4, 4, 1), (5, 5, 1, 1), strides=(1, 1, 1, 1), padding="VALID"),
            "Computed output size would be negative",
        ),
        (
            lambda: conv_output_shape((1, 4, 4, 3), (2, 2, 2, 1), strides=(1, 1, 1, 1), padding="VALID"),
            "not a multiple of input depth of filter",
        ),
        (
            lambda: conv_output_shape((1, 4, 4, 4), (2, 2, 2, 3), strides=(1, 1, 1, 1), padding="VALID"),
            "not a multiple of the number of groups",
        ),
        (
            lambda: conv_output_shape((1, 4, 4, 4), (2, 2, 4, 3), strides=(2, 1, 1, 1), padding="VALID"),
            "must be 1 for batch and channels",
        ),
        (
            lambda: conv_output_shape((1, 4, 4, 4), (2, 2, 4, 3), strides=(1, 0, 1, 1), padding="SAME"),
            "at least 1",
        ),
        (
            lambda: pool_output_shape(
                (1, 4, 4, 1), ksize=(1, 5, 5, 1), strides=(1, 1, 1, 1), padding="VALID"
            ),
            "Computed output size would be negative",
        ),
        (
            lambda: pool_output_shape(
                (1, 4, 4, 1),
                ksize=(1, 2, 2, 1),
                strides=(1, 1, 1, 1),
                padding="EXPLICIT",
                explicit_paddings=(0, 0, 2, 2, 0, 0, 0, 0),
            ),
            "padding must be less than the window",
        ),
        (
            lambda: pool_output_shape((1, 4, 4, 1), ksize=(2, 2, 2, 1), strides=(1, 1, 1, 1), padding="SAME"),
            "over the batch",
        ),
    ],
)
def test_sizes_that_can_not_be(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_pool_output_shape_with_unknown_sizes():
    assert pool_output_shape(
        (None, 28, None, 3), ksize=(1, 2, 2, 1), strides=(1, 2, 2, 1), padding="SAME"
    ) == (None, 14, None, 3)
