"""Switches between TensorFlow's versions: thalweg is TF 1.x in graph mode, whatever is asked."""

from __future__ import annotations

from thalweg.base import errors


def disable_v2_behavior() -> None:
    """Nothing: graph mode and reference variables are what there is."""


def disable_eager_execution() -> None:
    """Nothing: there is no eager mode."""


def disable_control_flow_v2() -> None:
    """Nothing: control flow is Switch and Merge."""


def disable_tensor_equality() -> None:
    """Nothing: tensors compare by identity."""


def disable_v2_tensorshape() -> None:
    """Nothing: dimensions of a TensorShape are Dimension objects."""


def control_flow_v2_enabled() -> bool:
    """False."""
    return False


def enable_eager_execution(
    config: object = None, device_policy: object = None, execution_mode: object = None
) -> None:
    """UnimplementedError: thalweg runs graphs."""
    del config, device_policy, execution_mode
    raise errors.UnimplementedError(
        None, None, "eager execution is not part of thalweg: build a graph and run it"
    )


def enable_v2_behavior() -> None:
    """UnimplementedError: thalweg runs graphs."""
    raise errors.UnimplementedError(None, None, "TensorFlow 2 behaviour is not part of thalweg")
