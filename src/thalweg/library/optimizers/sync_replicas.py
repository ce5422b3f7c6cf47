"""Synchronous training of replicas: not built yet."""

from __future__ import annotations

from typing import Any

from thalweg.base.errors import UnimplementedError
from thalweg.library.optimizers.optimizer import Optimizer


class SyncReplicasOptimizer(Optimizer):
    """Collects the gradients of several replicas, and applies their mean once. UnimplementedError for now."""

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        raise UnimplementedError(
            None, None, "SyncReplicasOptimizer: synchronous training of replicas is not built yet"
        )
