"""tf.app: running a script's main, and tf.flags under its old name."""

from thalweg import flags
from thalweg.library.app import run

__all__ = ["flags", "run"]
