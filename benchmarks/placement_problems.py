"""From graphs to placement problems: on described clusters of accelerators."""

from thalweg.client.session import plan_options
from thalweg.plan.pipeline import prepare
from thalweg.plan.placement.build import build
from thalweg.plan.placement.cluster import ClusterDescription, DeviceInfo, Speed
from thalweg.plan.placement.constraints import Constraints


def accelerators(count, memory=None, tasks=1):
    """GPUs as those of a server from 2020: 15 TFLOP/s, 1 TB/s, linked by PCI Express."""
    devices = [
        DeviceInfo(f"/job:worker/replica:0/task:{i % tasks}/device:GPU:{i // tasks}", "GPU", flops=1.5e13,
                   bandwidth=1e12, overhead=5e-6, memory=memory, hosts=True)
        for i in range(count)
    ]
    return ClusterDescription(devices, (), Speed(1e-5, 1.2e10), Speed(5e-5, 3e9))


def nodes(graph, fetches):
    """The nodes of a step, after the passes that come before placement."""
    targets = [graph.as_graph_element(f) for f in fetches]
    tensors = [t for t in targets if hasattr(t, "op")]
    return prepare(graph, [], tensors, [t for t in targets if not hasattr(t, "op")], plan_options(None))[0]


def problem(new, cluster):
    """The problem of placing these nodes there."""
    return build(new._ops, cluster, Constraints(new._ops, cluster, False, {}).groups, None).problem
