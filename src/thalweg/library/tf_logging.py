"""tf.logging: the logger "tensorflow", with TensorFlow's levels and formats."""

from __future__ import annotations

import logging
import sys
from typing import Any

DEBUG, INFO, WARN, ERROR, FATAL = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.FATAL

_counts: dict[Any, int] = {}


class _Stderr(logging.StreamHandler):
    """Writes to the stderr of the moment (tests replace it)."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(logging.Formatter("%(levelname)s:%(name)s:%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def _logger() -> logging.Logger:
    """The logger; it gets a handler of its own where the program has set up no logging."""
    logger = logging.getLogger("tensorflow")
    if not logger.handlers and not logging.getLogger().handlers:
        logger.addHandler(_Stderr())
        logger.propagate = False
        if logger.level == logging.NOTSET:
            logger.setLevel(WARN)
    return logger


def log(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at a level."""
    _logger().log(level, msg, *args, **kwargs)


def debug(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at DEBUG."""
    _logger().debug(msg, *args, **kwargs)


def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at INFO."""
    _logger().info(msg, *args, **kwargs)


def warning(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at WARN."""
    _logger().warning(msg, *args, **kwargs)


warn = warning


def error(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at ERROR."""
    _logger().error(msg, *args, **kwargs)


def fatal(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs at FATAL."""
    _logger().fatal(msg, *args, **kwargs)


def log_if(level: int, msg: Any, condition: Any, *args: Any) -> None:
    """Logs where `condition` holds."""
    if condition:
        log(level, msg, *args)


def log_every_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Logs the first of every n calls with this message."""
    count = _counts[msg] = _counts.get(msg, -1) + 1
    if count % n == 0:
        log(level, msg, *args)


def log_first_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Logs the first n calls with this message."""
    count = _counts[msg] = _counts.get(msg, -1) + 1
    if count < n:
        log(level, msg, *args)


def vlog(level: int, msg: Any, *args: Any) -> None:
    """Logs at a verbosity level, as absl counts them."""
    log(max(1, DEBUG - level + 1), msg, *args)


def TaskLevelStatusMessage(msg: Any) -> None:
    """Logs at ERROR."""
    error(msg)


def flush() -> None:
    """Writes out what handlers hold back."""
    for handler in _logger().handlers:
        handler.flush()


def get_verbosity() -> int:
    """The level from which messages are shown."""
    return _logger().getEffectiveLevel()


def set_verbosity(v: int | str) -> None:
    """Sets the level from which messages are shown."""
    _logger().setLevel(v)
