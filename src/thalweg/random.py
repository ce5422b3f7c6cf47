"""tf.random. Names from thalweg.library; what each does is said there."""

from thalweg.library.missing import missing
from thalweg.library.random_ops import random_normal as normal, random_shuffle as shuffle, truncated_normal, random_uniform as uniform
from thalweg.library.random_seed import get_seed, set_random_seed

__getattr__ = missing(__name__)

__all__ = [
    "get_seed",
    "normal",
    "set_random_seed",
    "shuffle",
    "truncated_normal",
    "uniform",
]
