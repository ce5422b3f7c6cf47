"""Arithmetic, reductions, products, norms."""

CASES = """
x + y
x + 1
1 + x
x + np.float64(2)
x + np.ones(3)
x - 2
2 - x
x * 2.5
[1., 2., 3.] * x
x / 2
2 / x
i / j
i / 2
i // j
x // 2.
i % 3
7 % i
x ** 2
2. ** x
-x
abs(x)
abs(z)
x < 1
x <= y
1 > x
x >= y
b & c
b | c
b ^ c
~b
b & True
i + 2.5
i + x
x + [1., s, 2.]
x + None
x == y
x != y
x @ w
t + "x"
x + tf.constant([1., 2., 3.])
tf.add(x, y)
tf.add(x, 2)
tf.add(2, x)
tf.add(x, y, name="total")
tf.add(t, t)
tf.subtract(x, y)
tf.subtract(x, 1.)
tf.multiply(x, y)
tf.multiply(x, 3.)
tf.multiply(x, y, name="prod")
tf.divide(x, y)
tf.divide(x, 2)
tf.divide(i, j)
tf.divide(x, y, name="quotient")
tf.div(x, y)
tf.div(i, j)
tf.div(i, 2)
tf.truediv(i, j)
tf.truediv(x, 2)
tf.realdiv(x, y)
tf.floordiv(i, j)
tf.floor_div(i, j)
tf.truncatediv(i, j)
tf.truncatemod(i, j)
tf.div_no_nan(x, y)
tf.math.divide_no_nan(x, 2.)
tf.math.multiply_no_nan(x, y)
tf.math.reciprocal_no_nan(x)
tf.mod(i, j)
tf.mod(x, 2.)
tf.floormod(i, j)
tf.pow(x, 2.)
tf.pow(x, y)
tf.maximum(x, 0.)
tf.minimum(x, y)
tf.squared_difference(x, y)
tf.abs(x)
tf.abs(z)
tf.abs([1., -2.])
tf.negative(x)
tf.sign(x)
tf.square(x)
tf.square(2.)
tf.sqrt(p)
tf.rsqrt(p)
tf.reciprocal(p)
tf.exp(x)
tf.exp(x, name="e")
tf.expm1(x)
tf.log(p)
tf.log1p(p)
tf.sin(x)
tf.cos(x)
tf.tan(x)
tf.asin(q)
tf.acos(q)
tf.atan(x)
tf.atan2(x, y)
tf.sinh(x)
tf.cosh(x)
tf.tanh(x)
tf.sigmoid(x)
tf.sigmoid(x, name="gate")
tf.log_sigmoid(x)
tf.erf(x)
tf.erfc(x)
tf.lgamma(p)
tf.digamma(p)
tf.floor(x)
tf.ceil(x)
tf.round(x)
tf.round(i)
tf.rint(x)
tf.is_nan(x)
tf.is_inf(x)
tf.is_finite(x)
tf.logical_and(b, c)
tf.logical_or(b, c)
tf.logical_not(b)
tf.logical_xor(b, c)
tf.equal(x, y)
tf.equal(x, 1.)
tf.equal(i, 3)
tf.not_equal(i, j)
tf.less(x, y)
tf.less_equal(x, 0.)
tf.greater(x, y)
tf.greater_equal(x, y)
tf.cast(x, tf.int32)
tf.cast(x, tf.float32)
tf.cast(b, tf.float32, name="correct")
tf.cast([1, 2], "float32")
tf.cast(2, tf.float32)
tf.to_float(i)
tf.to_int32(x)
tf.to_int64(i)
tf.to_double(x)
tf.to_float(x)
tf.to_bfloat16(x)
tf.bitcast(x, tf.int32)
tf.complex(x, y)
tf.real(z)
tf.imag(z)
tf.conj(z)
tf.conj(x)
tf.scalar_mul(2., x)
tf.math.polyval([1., 2., 3.], x)
tf.add_n([x, y, x])
tf.add_n([x])
tf.add_n([x], name="same")
tf.add_n([])
tf.accumulate_n([x, y])
tf.igamma(p, p)
tf.zeta(p + 1., p)
tf.math.xlogy(p, p)
tf.bitwise.bitwise_xor(i, j)
tf.reduce_sum(x)
tf.reduce_sum(x, 0)
tf.reduce_sum(x, axis=[0, 1])
tf.reduce_sum(x, reduction_indices=[1])
tf.reduce_sum(x, 1, keep_dims=True)
tf.reduce_sum(x, 1, keepdims=True)
tf.reduce_sum(x, 1, reduction_indices=1)
tf.reduce_sum(x, -1, name="total")
tf.reduce_sum(u)
tf.reduce_sum(v)
tf.reduce_sum(s)
tf.reduce_sum([1., 2.])
tf.reduce_sum(u, 1)
tf.reduce_mean(x)
tf.reduce_mean(x, name="loss")
tf.reduce_mean(tf.square(x - y))
tf.reduce_mean(v, [0], keep_dims=True)
tf.reduce_mean(u)
tf.reduce_prod(x, 1)
tf.reduce_max(x)
tf.reduce_max(i, 1)
tf.reduce_min(x, 0)
tf.reduce_all(b)
tf.reduce_any(b, 1)
tf.reduce_logsumexp(x)
tf.reduce_logsumexp(x, 1)
tf.reduce_logsumexp(x, 1, keep_dims=True)
tf.math.reduce_variance(x, 0)
tf.math.reduce_std(x)
tf.math.reduce_euclidean_norm(x, 1)
tf.count_nonzero(i)
tf.count_nonzero(x, 1)
tf.count_nonzero(b, dtype=tf.int32)
tf.argmax(x, 1)
tf.argmax(x)
tf.argmax(x, dimension=1)
tf.argmax(x, axis=1, output_type=tf.int32, name="best")
tf.argmax(x, 1, "predictions")
tf.argmin(x, -1)
tf.arg_max(x, 1)
tf.cumsum(x)
tf.cumsum(x, 1, exclusive=True, reverse=True)
tf.cumprod(x, axis=1)
tf.matmul(x, w)
tf.matmul(x, w, name="logits")
tf.matmul(x, y, transpose_b=True)
tf.matmul(x, y, transpose_a=True)
tf.matmul(x, y)
tf.matmul(x, [[1.], [2.], [3.]])
tf.matmul(m, m, transpose_b=True)
tf.matmul(m, m, adjoint_a=True)
tf.matmul(u, w)
tf.matmul(x, w, a_is_sparse=False)
tf.matmul(x, y, transpose_a=True, adjoint_a=True)
tf.matmul(d, x)
tf.linalg.matvec(x, [1., 2., 3.])
tf.trace(sq)
tf.tensordot(x, w, 1)
tf.tensordot(x, w, [[1], [0]])
tf.tensordot(m, w, [[1, 2], [0, 1]])
tf.tensordot(m, x, [[0], [0]])
tf.tensordot(m, p, axes=1)
tf.tensordot(v, w, 1)
tf.tensordot(u, w, 1)
tf.tensordot(x, w, [[1, 0], [0]])
tf.range(5)
tf.range(1, 10, 2)
tf.range(k)
tf.range(0., 1., 0.25)
tf.range(k64)
tf.range(3, dtype=tf.float32)
tf.range(k, name="steps")
tf.segment_sum(p, seg)
tf.segment_mean(p, seg)
tf.unsorted_segment_sum(p, ids, 3)
tf.unsorted_segment_max(p, ids, 3)
tf.unsorted_segment_mean(p, ids, 3)
tf.unsorted_segment_sqrt_n(p, ids, 3)
tf.clip_by_value(x, -1., 1.)
tf.clip_by_value(x, 1e-10, 1.0, name="probs")
tf.clip_by_value(i, 0, 5)
tf.clip_by_norm(x, 1.5)
tf.clip_by_norm(x, 1., axes=[1])
tf.global_norm([x, w])
tf.global_norm([x, None])
tf.clip_by_global_norm([x, w], 5.0)
tf.clip_by_global_norm([x, None], 1.0, use_norm=s)
tf.clip_by_global_norm(x, 1.0)
tf.clip_by_average_norm(x, 0.1)
tf.clip_by_value(tf.IndexedSlices(x, ids), -1., 1.)
tf.clip_by_norm(tf.IndexedSlices(x, ids), 1.)
tf.norm(x)
tf.norm(x, axis=1)
tf.norm(x, ord=1, axis=1, keep_dims=True)
tf.norm(x, ord=np.inf)
tf.norm(x, ord=3., axis=0)
tf.norm(x, ord="fro", axis=[0, 1])
tf.norm(x, ord=1, axis=(0, 1))
tf.norm(x, ord="bad")
tf.nn.l2_normalize(x, 1)
tf.nn.l2_normalize(x, dim=0)
tf.saturate_cast(x, tf.uint8)
tf.cross(x, y)
tf.matrix_inverse(sq)
tf.matrix_determinant(sq)
tf.cholesky(tf.matmul(sq, sq, transpose_b=True))
tf.matrix_band_part(sq, -1, 0)
tf.matrix_triangular_solve(sq, sq)
tf.bincount(ids)
tf.bincount(ids, minlength=5)
tf.bincount(ids, maxlength=2)
tf.bincount(ids, weights=p)
tf.confusion_matrix(ids, ids)
tf.confusion_matrix([0, 1, 1], [1, 1, 0], num_classes=3)
tf.histogram_fixed_width(x, [0., 1.], nbins=4)
tf.einsum("ij,jk->ik", x, w)
tf.einsum("ij,jk", x, w)
tf.einsum("ij->ji", x)
tf.einsum("bij,bkj->bik", m, m)
tf.einsum("ij,ij->i", x, y)
tf.einsum("ij,jk,kl->il", x, w, tf.transpose(w))
tf.einsum("ij,kl->ikjl", x, w)
tf.einsum("bij,bjk->ki", m, tf.matrix_transpose(m))
tf.einsum("ij,jk->ik", v, w)
tf.einsum("ijk->k", m)
tf.einsum("...ij,jk->...ik", m, tf.transpose(w))
tf.einsum("ij,jk->ik", x)
tf.einsum("ijk,jk->ik", x, w)
""".strip().splitlines()

#: code: why thalweg means to make another graph than the one recorded; ours.json has what it makes
_NO_GUARD = "an Assert is one node here, not a cond round one (and TensorFlow makes each constant twice)"
_EINSUM = "transposes and matrix products, as 1.15 (other names): their gradients need nothing new"
_DIAG = "1.15 makes the first version of the op for the main diagonal"
DIFFERENT = {
    "tf.trace(sq)": _DIAG,
    'tf.einsum("ij,jk->ik", x, w)': _EINSUM,
    'tf.einsum("ij,jk", x, w)': _EINSUM,
    'tf.einsum("ij->ji", x)': _EINSUM,
    'tf.einsum("bij,bkj->bik", m, m)': _EINSUM,
    'tf.einsum("ij,ij->i", x, y)': _EINSUM,
    'tf.einsum("ij,jk,kl->il", x, w, tf.transpose(w))': _EINSUM,
    'tf.einsum("ij,kl->ikjl", x, w)': _EINSUM,
    'tf.einsum("bij,bjk->ki", m, tf.matrix_transpose(m))': _EINSUM,
    'tf.einsum("ij,jk->ik", v, w)': _EINSUM,
    'tf.einsum("ijk->k", m)': _EINSUM,
    'tf.einsum("...ij,jk->...ik", m, tf.transpose(w))': _EINSUM,
    "tf.confusion_matrix(ids, ids)": _NO_GUARD,
    "tf.confusion_matrix([0, 1, 1], [1, 1, 0], num_classes=3)": _NO_GUARD,
    "tf.saturate_cast(x, tf.uint8)": "1.15 takes the minimum and the maximum",
    "tf.matrix_band_part(sq, -1, 0)": "1.15 takes the op's default type for Python integers",
    "tf.matrix_triangular_solve(sq, sq)": "1.15 has the node without a scope",
    "tf.bincount(ids)": "1.15 makes Bincount where 2.21 makes DenseBincount",
    "tf.bincount(ids, minlength=5)": "1.15 makes Bincount where 2.21 makes DenseBincount",
    "tf.bincount(ids, maxlength=2)": "1.15 makes Bincount where 2.21 makes DenseBincount",
    "tf.bincount(ids, weights=p)": "1.15 makes Bincount where 2.21 makes DenseBincount",
}
