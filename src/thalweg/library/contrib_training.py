"""tf.contrib.training: strategies for replica_device_setter."""

from thalweg.library.device_setter import GreedyLoadBalancingStrategy, RandomStrategy, byte_size_load_fn
from thalweg.library.missing import missing

__getattr__ = missing("thalweg.contrib.training")

__all__ = ["GreedyLoadBalancingStrategy", "RandomStrategy", "byte_size_load_fn"]
