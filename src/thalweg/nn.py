"""tf.nn: neural network ops. Names from thalweg.library; what each does is said there."""

from thalweg.library.missing import missing
from thalweg.library.array_ops import depth_to_space, space_to_batch, space_to_depth
from thalweg.library.clip_ops import l2_normalize
from thalweg.library.math_ops import sigmoid, tanh

__getattr__ = missing(__name__)

__all__ = [
    "depth_to_space",
    "l2_normalize",
    "sigmoid",
    "space_to_batch",
    "space_to_depth",
    "tanh",
]
