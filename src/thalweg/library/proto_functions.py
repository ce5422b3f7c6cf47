"""How the elements of collections become messages and come back: what MetaGraphs hold of them.

register_proto_function("my_collection", MyDef, to_proto, from_proto): to_proto(element, export_scope=) may
return None for what is outside of the scope; from_proto(message, import_scope=) finds what the message names
in the default graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

ToProto = Callable[..., Any]
FromProto = Callable[..., Any]

_registered: dict[str, tuple[Any, ToProto | None, FromProto | None]] = {}


def register_proto_function(
    collection_name: str,
    proto_type: Any = None,
    to_proto: ToProto | None = None,
    from_proto: FromProto | None = None,
) -> None:
    """Registers how a collection's elements become messages of `proto_type`, and come back.

    TypeError for a function that can't be called.
    """
    for function, name in ((to_proto, "to_proto"), (from_proto, "from_proto")):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be callable.")
    _registered[collection_name] = (proto_type, to_proto, from_proto)


def collection_proto_type(collection_name: str) -> Any:
    """The message class of a collection's elements, or None."""
    return _registered.get(collection_name, (None, None, None))[0]


def to_proto_function(collection_name: str) -> ToProto | None:
    """What makes messages of a collection's elements, or None."""
    return _registered.get(collection_name, (None, None, None))[1]


def from_proto_function(collection_name: str) -> FromProto | None:
    """What makes a collection's elements of messages, or None."""
    return _registered.get(collection_name, (None, None, None))[2]


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """A name without the scope that is exported; "^" and "loc:@" before it stay."""
    if not export_scope:
        return name
    scope = re.escape(export_scope.rstrip("/"))
    return re.sub(rf"([\^]|loc:@|^){scope}[\/]+(.*)", r"\1\2", name, count=1)


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """A name under the scope that is imported into; "^" and "loc:@" before it stay."""
    if not import_scope:
        return name
    head = re.match(r"([\^]|loc:@|)", name)
    assert head is not None
    return f"{head[0]}{import_scope.rstrip('/')}/{name[head.end() :]}"


def in_scope(name: str, export_scope: str | None) -> bool:
    """Whether a name belongs to what is exported."""
    return export_scope is None or name.startswith(export_scope)
