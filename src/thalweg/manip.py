"""tf.manip. Names from thalweg.library; what each does is said there."""

from thalweg.library.array_ops import batch_to_space_nd, reshape, space_to_batch_nd
from thalweg.library.gathering_ops import gather_nd, scatter_nd
from thalweg.library.joining_ops import reverse, roll, tile
from thalweg.library.missing import missing

__getattr__ = missing(__name__)

__all__ = [
    "batch_to_space_nd",
    "gather_nd",
    "reshape",
    "reverse",
    "roll",
    "scatter_nd",
    "space_to_batch_nd",
    "tile",
]
