"""tf.queue: queues. Names from thalweg.library; what each does is said there."""

from thalweg.library.missing import missing
from thalweg.library.queues import FIFOQueue, PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue

__getattr__ = missing(__name__)

__all__ = [
    "FIFOQueue",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "QueueBase",
    "RandomShuffleQueue",
]
