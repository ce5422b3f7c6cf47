"""tf.raw_ops: every op by keyword, under its own name."""

from thalweg.library.raw_ops import __dir__, __getattr__

__all__ = ["__dir__", "__getattr__"]
