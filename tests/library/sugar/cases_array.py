"""Shapes, slices, joining, gathering, filling, diagonals."""

CASES = """
x[0]
x[1, 2]
x[:, 1]
x[0:1, ::2]
x[-1]
x[..., 0]
x[:, None]
x[tf.newaxis, ...]
x[k]
x[k:]
x[:k, 0]
x[k64]
m[0, :, k]
x[1:k]
x[::-1]
x[b2]
x[b]
x[()]
x[0.5]
x[x]
x["a"]
x[[0, 1]]
x[np.int64(1)]
x[s]
tf.shape(x)
tf.shape(v)
tf.shape(u)
tf.shape(x, name="sizes")
tf.shape(v, out_type=tf.int64)
tf.shape(v)[0]
tf.shape([1, 2, 3])
tf.size(x)
tf.size(v)
tf.rank(x)
tf.rank(u)
tf.shape_n([x, v])
tf.identity(x)
tf.identity(x, name="out")
tf.identity([1., 2.])
tf.identity_n([x, i])
tf.stop_gradient(x)
tf.guarantee_const(x)
tf.ensure_shape(v, [2, 3])
tf.reshape(x, [3, 2])
tf.reshape(x, [-1])
tf.reshape(v, [-1, 1], name="column")
tf.reshape(x, shp)
tf.reshape(v, [tf.shape(v)[0], 3, 1])
tf.reshape(v, tf.stack([tf.shape(v)[0], -1]))
tf.reshape(x, (k, 6))
tf.expand_dims(x, 0)
tf.expand_dims(x, dim=1)
tf.expand_dims(x, axis=-1)
tf.expand_dims(x)
tf.expand_dims(x, 0, dim=0)
tf.squeeze(tf.reshape(x, [1, 2, 3, 1]))
tf.squeeze(tf.reshape(x, [1, 2, 3, 1]), [0])
tf.squeeze(tf.reshape(x, [1, 2, 3, 1]), squeeze_dims=[3])
tf.squeeze(tf.reshape(x, [1, 2, 3, 1]), 3)
tf.squeeze(x, [0])
tf.concat([x, y], 0)
tf.concat([x, y], axis=1, name="joined")
tf.concat([x], 0)
tf.concat(axis=1, values=[x, v])
tf.concat([x, w], 0)
tf.stack([x, y])
tf.stack([x, y], axis=1)
tf.stack([1, 2, 3])
tf.stack([k, 2])
tf.stack([x, y], axis=5)
tf.stack([x, y], name="pair", axis=-1)
tf.parallel_stack([x, y])
tf.unstack(x)
tf.unstack(x, axis=1)
tf.unstack(v)
tf.unstack(v, 2)
tf.split(x, 3, 1)
tf.split(value=x, num_or_size_splits=[1, 2], axis=1)
tf.split(x, 3, axis=1, name="parts")
tf.split(x, 2, 1)
tf.split(x, tf.constant([1, 2]), 1)
tf.slice(x, [0, 1], [2, 1])
tf.slice(x, [0, 0], [-1, 2])
tf.strided_slice(x, [0, 0], [2, 2])
tf.strided_slice(x, [0], [1], shrink_axis_mask=1)
tf.gather(x, [1, 0])
tf.gather(x, ids, axis=1)
tf.gather(x, 0, name="row")
tf.gather(x, [[0, 1], [2, 0]], axis=1, batch_dims=1)
tf.batch_gather(x, [[0], [2]])
tf.gather_nd(x, [[0, 1], [1, 2]])
tf.gather_nd(m, [[0, 1], [1, 0]], batch_dims=0)
tf.boolean_mask(x, b)
tf.boolean_mask(x, b2)
tf.boolean_mask(x, [True, False, True], axis=1)
tf.boolean_mask(v, bn)
tf.boolean_mask(u, bn)
tf.boolean_mask(x, True)
tf.boolean_mask(x, [True, False, True])
tf.where(b)
tf.where(b, x, y)
tf.where(b2, x, y)
tf.where(b, x)
tf.where_v2(b, x, 0.)
tf.pad(x, [[1, 0], [0, 2]])
tf.pad(x, [[1, 1], [1, 1]], "REFLECT")
tf.pad(x, [[1, 1], [1, 1]], mode="symmetric")
tf.pad(x, [[1, 1], [0, 0]], constant_values=5)
tf.pad(x, [[1, 1], [0, 0]], "BAD")
tf.pad(v, [[1, 1], [0, 2]])
tf.tile(x, [2, 1])
tf.tile(v, [1, 2])
tf.transpose(x)
tf.transpose(m, [2, 0, 1])
tf.transpose(m, perm=[0, 2, 1], name="swap")
tf.transpose(u)
tf.matrix_transpose(m)
tf.matrix_transpose(u)
tf.reverse(x, [0])
tf.reverse(x, axis=[1])
tf.reverse_sequence(seq, [3, 5], seq_axis=1, batch_axis=0)
tf.reverse_sequence(seq, lab, seq_dim=1, batch_dim=0)
tf.one_hot(ids, 3)
tf.one_hot(ids, depth=3, on_value=1., off_value=-1., axis=0)
tf.one_hot(ids, 3, dtype=tf.int32)
tf.one_hot(ids, k, name="hot")
tf.one_hot(ids, 3, on_value=5)
tf.one_hot(ids, 3, on_value=1, dtype=tf.float32)
tf.one_hot([0, 1], 2, True, False)
tf.fill([2, 3], 7.)
tf.fill(shp, 0)
tf.zeros([2, 3])
tf.zeros([2], tf.int32, name="none")
tf.zeros([], tf.bool)
tf.zeros([2], tf.string)
tf.zeros(shp)
tf.zeros([tf.shape(v)[0], 2])
tf.zeros([100, 100])
tf.zeros(x.shape)
tf.zeros([k64, 2])
tf.ones([2, 3])
tf.ones(3, tf.int64)
tf.ones(shape=[k, 3])
tf.ones([2], tf.bool)
tf.zeros_like(x)
tf.zeros_like(v)
tf.zeros_like(v, dtype=tf.int32)
tf.zeros_like([1, 2])
tf.zeros_like(b)
tf.ones_like(x)
tf.ones_like(v)
tf.ones_like(x, dtype=tf.int32)
tf.zeros([2, 3]) + 1
tf.sequence_mask([1, 3, 2], 5)
tf.sequence_mask(ids)
tf.sequence_mask(ids, 3, dtype=tf.float32)
tf.sequence_mask(lab, maxlen=k64)
tf.meshgrid(p, [1., 2.])
tf.meshgrid(p, [1., 2.], indexing="ij")
tf.eye(3)
tf.eye(2, 3)
tf.eye(2, batch_shape=[3])
tf.diag(p)
tf.diag_part(sq)
tf.matrix_diag(x)
tf.matrix_diag_part(m)
tf.matrix_set_diag(sq, [1., 2., 3.])
tf.broadcast_to(p, [2, 4])
tf.broadcast_static_shape(x.shape, tf.shape(x).shape)
tf.broadcast_dynamic_shape(tf.shape(v), [1, 3])
tf.dynamic_partition(p, ids, 3)
tf.dynamic_stitch([[0, 2], [1]], [[1., 2.], [3.]])
tf.invert_permutation([2, 0, 1])
tf.unique(ids)
tf.unique_with_counts(ids, out_idx=tf.int64)
tf.setdiff1d([1, 2, 3], [2])
tf.scatter_nd([[0], [2]], [1., 2.], [4])
tf.space_to_depth(img, 2)
tf.depth_to_space(tf.tile(img, [1, 1, 1, 2]), 2)
tf.space_to_batch(img, [[0, 0], [0, 0]], 2)
tf.batch_to_space(tf.tile(img, [4, 1, 1, 1]), [[0, 0], [0, 0]], block_size=2)
tf.space_to_batch_nd(img, [2, 2], [[0, 0], [2, 0]])
tf.required_space_to_batch_paddings([5, 6], [2, 4])
tf.searchsorted([[1., 2., 4.]], [[2., 3.]])
tf.roll(x, 1, 1)
tf.extract_image_patches(img, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
tf.placeholder(tf.float32, [None, 2], name="fed")
tf.placeholder(tf.int32)
tf.placeholder_with_default(x, [None, 3])
tf.placeholder_with_default(0.5, [])
tf.constant(3.)
tf.constant([1, 2], tf.float32, name="c")
tf.constant(0, shape=[2, 2])
tf.constant([1, 2, 3, 4], shape=[2, 2])
tf.constant("a")
tf.convert_to_tensor([1., 2.])
tf.convert_to_tensor([x, y])
tf.convert_to_tensor([[1., s], [2., 3.]])
tf.convert_to_tensor(np.arange(3), dtype=tf.float32)
tf.convert_to_tensor(3, preferred_dtype=tf.float32)
""".strip().splitlines()

#: code: why thalweg means to make another graph than the one recorded; ours.json has what it makes
_DIAG = "1.15 makes the first version of the op for the main diagonal"
DIFFERENT = {
    "tf.eye(3)": _DIAG,
    "tf.eye(2, 3)": _DIAG,
    "tf.eye(2, batch_shape=[3])": _DIAG,
    "tf.matrix_diag(x)": _DIAG,
    "tf.matrix_diag_part(m)": _DIAG,
    "tf.matrix_set_diag(sq, [1., 2., 3.])": _DIAG,
    "x[k:]": "1.15 packs each list as it is; 2.21 makes nodes of the open ends",
    "x[:k, 0]": "1.15 packs each list as it is; 2.21 makes nodes of the open ends",
    "x[1:k]": "1.15 packs each list as it is; 2.21 makes nodes of the open ends",
    "x[k64]": "1.15 packs each list and casts to int64",
    "tf.batch_gather(x, [[0], [2]])": "one GatherV2 with batch_dims does it",
    "tf.reverse_sequence(seq, [3, 5], seq_axis=1, batch_axis=0)": "1.15 takes the op's default type for Python integers",
    "tf.one_hot([0, 1], 2, True, False)": "1.15 takes the op's default type for Python integers",
    "tf.space_to_batch(img, [[0, 0], [0, 0]], 2)": "1.15 takes the op's default type for integers",
    "tf.batch_to_space(tf.tile(img, [4, 1, 1, 1]), [[0, 0], [0, 0]], block_size=2)": "1.15 takes the op's default type",
}
