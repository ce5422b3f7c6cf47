"""tf.contrib: what else is built of it. Names from thalweg.library; what each does is said there."""

from thalweg.library import contrib_training as training
from thalweg.library.missing import missing

__getattr__ = missing(__name__)

__all__ = ["training"]
