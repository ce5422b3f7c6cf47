"""SessionManager: a session with its variables initialised, restored, or waited for.

Source: TensorFlow's session_manager.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from thalweg.base import errors
from thalweg.client.session import Session
from thalweg.graph.convert import get_default_graph
from thalweg.graph.graph import Graph
from thalweg.library import framework, tf_logging
from thalweg.library.checkpoint_state import get_checkpoint_state


class SessionManager:
    """Makes sessions and brings their variables up.

    ready_op: lists variables without a value; the session is ready when it lists none.
    ready_for_local_init_op: the same before local_init_op may run. recovery_wait_secs: between two looks
    while waiting.
    """

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: Any = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op , "
                f"ready_for_local_init_op [{ready_for_local_init_op}]"
            )
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = graph if graph is not None else get_default_graph()
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> Any:
        """A session that is ready: from the latest checkpoint, or initialised by init_op and init_fn.

        Then local_init_op runs. wait_for_checkpoint: wait for one up to max_wait_secs before initialising.
        Errors: RuntimeError where the session isn't ready after all that, with the variables' names.
        """
        session, is_restored = self._restore_checkpoint(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        try:
            if not is_restored:
                self._initialize(session, init_op, init_feed_dict, init_fn)
            done, why = self._try_local_init(session)
            if not done:
                raise RuntimeError(
                    "Init operations did not make model ready for local_init.  Init op: "
                    f"{_name_of(init_op)}, init fn: {init_fn}, error: {why}"
                )
            done, why = self._is_ready(session)
            if not done:
                raise RuntimeError(
                    f"Init operations did not make model ready.  Init op: {_name_of(init_op)}, init fn: "
                    f"{init_fn}, local_init_op: {_name_of(self._local_init_op)}, error: {why}"
                )
        except BaseException:
            _close_quietly(session)
            raise
        return session

    def _initialize(self, session: Any, init_op: Any, feeds: Any, init_fn: Any) -> None:
        if init_op is None and not init_fn and self._local_init_op is None:
            raise RuntimeError(
                "Model is not initialized and no init_op or init_fn or local_init_op was given"
            )
        if init_op is not None:
            session.run(init_op, feed_dict=feeds)
        if init_fn:
            init_fn(session)

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> tuple[Any, bool]:
        """A session, restored if there is a checkpoint, and whether it was and is ready."""
        session, is_restored = self._restore_checkpoint(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        source = checkpoint_dir or checkpoint_filename_with_path
        done, why = self._try_local_init(session)
        if not is_restored:
            return session, False
        if not done:
            tf_logging.info(
                "Restoring model from %s did not make model ready for local init: %s", source, why
            )
            return session, False
        done, why = self._is_ready(session)
        if not done:
            tf_logging.info("Restoring model from %s did not make model ready: %s", source, why)
            return session, False
        tf_logging.info("Restored model from %s", source)
        return session, True

    def wait_for_session(
        self, master: str, config: Any = None, max_wait_secs: float | None = float("inf")
    ) -> Any:
        """A session whose variables somebody else (the chief) has initialised or restored.

        DeadlineExceededError where that takes longer than max_wait_secs (None: no limit).
        """
        limit = float("inf") if max_wait_secs is None else max_wait_secs
        deadline = time.monotonic() + limit
        while True:
            session = Session(master, graph=self._graph, config=config)
            try:
                why_not = None
                done, why_not_local = self._try_local_init(session)
                if done:
                    done, why_not = self._is_ready(session)
            except BaseException:
                _close_quietly(session)
                raise
            if done:
                return session
            _close_quietly(session)
            if deadline - time.monotonic() < self._recovery_wait_secs:
                raise errors.DeadlineExceededError(
                    None, None, f"Session was not ready after waiting {limit:g} secs."
                )
            tf_logging.info(
                "Waiting for model to be ready.  Ready_for_local_init_op:  %s, ready: %s",
                why_not_local,
                why_not,
            )
            time.sleep(self._recovery_wait_secs)

    def _restore_checkpoint(
        self,
        master: str,
        saver: Any,
        folder: str | None,
        path: str | None,
        wait_for_checkpoint: bool,
        max_wait_secs: float,
        config: Any,
    ) -> tuple[Any, bool]:
        """A session, and whether its variables come from a checkpoint: `path`, or the latest in `folder`."""
        if folder and path:
            raise ValueError("Can not provide both checkpoint_dir and checkpoint_filename_with_path.")
        session = Session(master, graph=self._graph, config=config)
        if not saver or not (folder or path):
            return session, False
        try:
            if path:
                _restore(session, saver, path)
                return session, True
            state = get_checkpoint_state(folder)
            waited = 0.0
            while not state or not state.model_checkpoint_path:
                if not wait_for_checkpoint or waited >= max_wait_secs:
                    return session, False
                tf_logging.info("Waiting for checkpoint to be available.")
                time.sleep(self._recovery_wait_secs)
                waited += self._recovery_wait_secs
                state = get_checkpoint_state(folder)
            _restore(session, saver, state.model_checkpoint_path)
            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        except BaseException:
            _close_quietly(session)
            raise
        return session, True

    def _try_local_init(self, session: Any) -> tuple[bool, str | None]:
        if self._local_init_op is None:
            return True, None
        done, why = _ready(self._ready_for_local_init_op, session, "Model not ready for local init")
        if not done:
            return False, why
        tf_logging.info("Running local_init_op.")
        session.run(
            self._local_init_op, feed_dict=self._local_init_feed_dict, options=self._local_init_run_options
        )
        tf_logging.info("Done running local_init_op.")
        return True, None

    def _is_ready(self, session: Any) -> tuple[bool, str | None]:
        return _ready(self._ready_op, session, "Model not ready")


def _restore(session: Any, saver: Any, path: str) -> None:
    # a SavedModel's initialisers come first: they may set variables that the checkpoint sets anew
    initializers = framework.get_collection("saved_model_initializers")
    if initializers:
        session.run(initializers)
    saver.restore(session, path)


def _ready(op: Any, session: Any, message: str) -> tuple[bool, str | None]:
    """Whether the variables that `op` looks at all have values; and which don't."""
    if op is None:
        return True, None
    try:
        names = session.run(op)
    except errors.FailedPreconditionError as e:
        if "uninitialized" not in str(e):
            tf_logging.warning("%s : error [%s]", message, str(e))
            raise
        return False, str(e)
    # older programs give assert_variables_initialized here, which is a number, or an operation
    if names is None or names.dtype == np.int32 or names.size == 0:
        return True, None
    return False, "Variables not initialized: " + ", ".join(n.decode() for n in names)


def _name_of(obj: Any) -> str:
    if obj is None:
        return "None"
    return obj.name if hasattr(obj, "name") else f"<no name for {type(obj)}>"


def _close_quietly(session: Any) -> None:
    try:
        session.close()
    except Exception as e:
        tf_logging.vlog(1, "Ignored exception: %s", e)
