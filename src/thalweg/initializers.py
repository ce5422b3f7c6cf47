"""tf.initializers. Names from thalweg.library; what each does is said there."""

from thalweg.library.missing import missing
from thalweg.library.initializers import he_normal, he_uniform, lecun_normal, lecun_uniform

__getattr__ = missing(__name__)

__all__ = [
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
]
