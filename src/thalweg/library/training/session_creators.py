"""What makes the session of a MonitoredSession. Source: TensorFlow's monitored_session.py."""

from __future__ import annotations

import abc
from typing import Any

from thalweg.graph.convert import get_default_graph
from thalweg.library.training.scaffold import Scaffold
from thalweg.library.training.session_manager import SessionManager


class SessionCreator(abc.ABC):
    """Makes sessions that are ready to run. Abstract."""

    @abc.abstractmethod
    def create_session(self) -> Any:
        """A new session."""


class _ScaffoldCreator(SessionCreator):
    """Finalizes a scaffold and leaves the rest to a SessionManager. Abstract."""

    def __init__(self, scaffold: Scaffold | None, master: str, config: Any) -> None:
        self._scaffold = scaffold or Scaffold()
        self._session_manager: SessionManager | None = None
        self._master = master
        self._config = config

    def _manager(self) -> SessionManager:
        """The manager of the finalized scaffold's nodes."""
        self._scaffold.finalize()
        if self._session_manager is None:
            self._session_manager = SessionManager(
                local_init_op=self._scaffold.local_init_op,
                local_init_feed_dict=self._scaffold.local_init_feed_dict,
                ready_op=self._scaffold.ready_op,
                ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
                graph=get_default_graph(),
            )
        return self._session_manager


class ChiefSessionCreator(_ScaffoldCreator):
    """Makes the session of the chief: restores the latest checkpoint, or a certain one, or initialises."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path

    def create_session(self) -> Any:
        """A session with its variables restored or initialised."""
        return self._manager().prepare_session(
            self._master,
            saver=self._scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=self._scaffold.init_op,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )


class WorkerSessionCreator(_ScaffoldCreator):
    """Makes the session of another worker: waits, up to max_wait_secs, until the chief has initialised."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> Any:
        """A session whose variables the chief has initialised."""
        return self._manager().wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs
        )
