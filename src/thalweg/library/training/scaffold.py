"""Scaffold: what a session needs to start, collected or made. Source: TensorFlow's monitored_session.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thalweg.graph.convert import get_default_graph
from thalweg.library import framework, tf_logging
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.grouping import group
from thalweg.library.joining_ops import concat
from thalweg.library.resources import (
    initialize_resources,
    local_resources,
    report_uninitialized_resources,
    shared_resources,
    tables_initializer,
)
from thalweg.library.saver import get_saver_or_default
from thalweg.library.summary_ops import merge_all
from thalweg.library.variables import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)


class Scaffold:
    """The nodes and the Saver that start a session, restore it, and tell whether it is ready.

    What isn't given is taken from the graph's collections when the graph is finalized, or made and put there.
    init_op initialises global variables, local_init_op local ones and tables; ready_op and
    ready_for_local_init_op list what isn't initialised. init_fn(scaffold, session) runs after init_op.
    copy_from_scaffold: where the other arguments are None, its parts are taken.
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Scaffold, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        if copy_from_scaffold is not None and not isinstance(copy_from_scaffold, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")

        def part(given: Any, name: str) -> Any:
            return given if given is not None else getattr(copy_from_scaffold, name, None)

        self._user_init_fn = part(init_fn, "_user_init_fn")
        self._init_op = part(init_op, "_init_op")
        self._init_feed_dict = part(init_feed_dict, "_init_feed_dict")
        self._ready_op = part(ready_op, "_ready_op")
        self._ready_for_local_init_op = part(ready_for_local_init_op, "_ready_for_local_init_op")
        self._local_init_op = part(local_init_op, "_local_init_op")
        self._local_init_feed_dict = part(local_init_feed_dict, "_local_init_feed_dict")
        self._summary_op = part(summary_op, "_summary_op")
        self._saver = part(saver, "_saver")

    def finalize(self) -> Scaffold:
        """Makes what is missing and finalizes the default graph."""
        if self._init_op is None:
            self._init_op = self.get_or_default("init_op", GraphKeys.INIT_OP, _default_init_op)
        if self._ready_op is None:
            self._ready_op = self.get_or_default("ready_op", GraphKeys.READY_OP, _default_ready_op)
        if self._ready_for_local_init_op is None:
            self._ready_for_local_init_op = self.get_or_default(
                "ready_for_local_init_op",
                GraphKeys.READY_FOR_LOCAL_INIT_OP,
                _default_ready_for_local_init_op,
            )
        if self._local_init_op is None:
            self._local_init_op = self.get_or_default(
                "local_init_op", GraphKeys.LOCAL_INIT_OP, self.default_local_init_op
            )
        if self._summary_op is None:
            self._summary_op = self.get_or_default("summary_op", GraphKeys.SUMMARY_OP, merge_all)
        if self._saver is None:
            self._saver = get_saver_or_default()
        self._saver.build()
        get_default_graph().finalize()
        tf_logging.info("Graph was finalized.")
        return self

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        """init_fn as a function of the session alone."""
        function = self._user_init_fn
        return None if function is None else lambda session: function(self, session)

    @property
    def init_op(self) -> Any:
        """Initialises the global variables."""
        return self._init_op

    @property
    def ready_op(self) -> Any:
        """Lists the variables that have no value."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """Lists the global variables that have no value."""
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        """Initialises the local variables and tables."""
        return self._local_init_op

    @property
    def local_init_feed_dict(self) -> Any:
        """Feeds for local_init_op."""
        return self._local_init_feed_dict

    @property
    def summary_op(self) -> Any:
        """All summaries, merged; None where there are none."""
        return self._summary_op

    @property
    def saver(self) -> Any:
        """Saves and restores the variables."""
        return self._saver

    @property
    def init_feed_dict(self) -> Any:
        """Feeds for init_op."""
        return self._init_feed_dict

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """The only element of a collection; where it is empty, a new one, put there.

        RuntimeError where the collection has several.
        """
        elements = framework.get_collection(collection_key)
        if len(elements) > 1:
            raise RuntimeError(
                f'More than one item in the collection "{collection_key}". Please indicate which one to use '
                f"by passing it to the tf.Scaffold constructor as:  tf.Scaffold({arg_name}=item to use)"
            )
        if elements:
            return elements[0]
        made = default_constructor()
        if made is not None:
            framework.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Any:
        """A node that initialises local variables, tables and local resources."""
        return group(
            local_variables_initializer(), tables_initializer(), initialize_resources(local_resources())
        )


def _default_init_op() -> Any:
    return group(
        global_variables_initializer(),
        initialize_resources(shared_resources()),
        framework.get_collection("saved_model_initializers"),
    )


def _default_ready_op() -> Any:
    return concat([report_uninitialized_variables(), report_uninitialized_resources()], 0)


def _default_ready_for_local_init_op() -> Any:
    return concat(
        [
            report_uninitialized_variables(global_variables()),
            report_uninitialized_resources(shared_resources()),
        ],
        0,
    )
