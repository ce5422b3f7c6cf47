"""tf.losses. Names from thalweg.library; what each does is said there."""

from thalweg.library.missing import missing

__getattr__ = missing(__name__)

__all__ = [
]
