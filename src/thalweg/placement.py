"""tf.placement: where nodes run, and why. docs/placement.md explains it."""

from thalweg.plan.placement.cluster import ClusterDescription, DeviceInfo, Link, Speed
from thalweg.plan.placement.costs import CostModel
from thalweg.plan.placement.report import DeviceRow, NodeRow, Placement
from thalweg.tools.placement import explain, format_placement, measure
from thalweg.tools.placement_picture import draw

__all__ = [
    "ClusterDescription",
    "CostModel",
    "DeviceInfo",
    "DeviceRow",
    "Link",
    "NodeRow",
    "Placement",
    "Speed",
    "draw",
    "explain",
    "format_placement",
    "measure",
]
