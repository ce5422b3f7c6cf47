"""tf.app and tf.flags, on absl: `tf.app.run`, `tf.app.flags.DEFINE_*`, `tf.app.flags.FLAGS`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from absl import app as absl_app
from absl import flags as absl_flags


class _Flags:
    """absl's FLAGS, which reads the command line by itself when first looked at, as in TensorFlow 1.x."""

    def __init__(self, values: absl_flags.FlagValues) -> None:
        object.__setattr__(self, "_values", values)

    def _parsed(self) -> absl_flags.FlagValues:
        values: absl_flags.FlagValues = self._values
        if not values.is_parsed():
            values(sys.argv, known_only=True)
        return values

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parsed(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._parsed(), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._values, name)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __dir__(self) -> list[str]:
        return dir(self._values)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._values(*args, **kwargs)


FLAGS = _Flags(absl_flags.FLAGS)


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> NoReturn:
    """Reads the flags, calls main(argv) with what is left, and exits with what it returns.

    main: `__main__.main` where None. Unknown flags are left in argv.
    """
    function = main if main is not None else sys.modules["__main__"].main
    absl_app.run(
        function,
        argv=list(argv) if argv is not None else None,
        flags_parser=lambda args: absl_flags.FLAGS(args, known_only=True),
    )
    raise SystemExit(0)


def _define(name: str) -> Callable[..., Any]:
    """A DEFINE_* of absl that takes TensorFlow's keywords and lets a script run twice in a process."""
    define = getattr(absl_flags, name)

    def wrapper(flag_name: str, default_value: Any, docstring: Any, *args: Any, **kwargs: Any) -> Any:
        return define(flag_name, default_value, docstring, *args, **kwargs)

    wrapper.__name__ = name
    wrapper.__doc__ = define.__doc__
    return wrapper


DEFINE_string = _define("DEFINE_string")
DEFINE_integer = _define("DEFINE_integer")
DEFINE_float = _define("DEFINE_float")
DEFINE_boolean = _define("DEFINE_boolean")
DEFINE_bool = _define("DEFINE_bool")
DEFINE_list = _define("DEFINE_list")
DEFINE_spaceseplist = _define("DEFINE_spaceseplist")
DEFINE_multi_string = _define("DEFINE_multi_string")
DEFINE_multi_integer = _define("DEFINE_multi_integer")
DEFINE_multi_float = _define("DEFINE_multi_float")
DEFINE_alias = absl_flags.DEFINE_alias


def DEFINE_enum(
    name: str, default_value: Any, enum_values: Sequence[str], docstring: str, **kwargs: Any
) -> Any:
    """A flag that takes one of a few strings."""
    return absl_flags.DEFINE_enum(name, default_value, list(enum_values), docstring, **kwargs)


mark_flag_as_required = absl_flags.mark_flag_as_required
mark_flags_as_required = absl_flags.mark_flags_as_required
register_validator = absl_flags.register_validator
validator = absl_flags.validator
Flag = absl_flags.Flag
FlagValues = absl_flags.FlagValues
