"""tf.train: optimizers, decay, queues of input. Names from thalweg.library; what each does is said there."""

from tensorboard.compat.proto.cluster_pb2 import ClusterDef, JobDef

from thalweg.base.cluster_spec import ClusterSpec
from thalweg.library import queue_runner
from thalweg.library.batching import (
    batch,
    batch_join,
    maybe_batch,
    maybe_batch_join,
    maybe_shuffle_batch,
    maybe_shuffle_batch_join,
    shuffle_batch,
    shuffle_batch_join,
)
from thalweg.library.coordinator import Coordinator, LooperThread
from thalweg.library.device_setter import replica_device_setter
from thalweg.library.input_producers import (
    input_producer,
    limit_epochs,
    range_input_producer,
    slice_input_producer,
    string_input_producer,
)
from thalweg.library.learning_rate_decay import (
    cosine_decay,
    cosine_decay_restarts,
    exponential_decay,
    inverse_time_decay,
    linear_cosine_decay,
    natural_exp_decay,
    noisy_linear_cosine_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)
from thalweg.library.missing import missing
from thalweg.library.moving_averages import ExponentialMovingAverage
from thalweg.library.optimizers.adadelta import AdadeltaOptimizer
from thalweg.library.optimizers.adagrad import AdagradOptimizer
from thalweg.library.optimizers.adagrad_da import AdagradDAOptimizer
from thalweg.library.optimizers.adam import AdamOptimizer
from thalweg.library.optimizers.ftrl import FtrlOptimizer
from thalweg.library.optimizers.gradient_descent import GradientDescentOptimizer
from thalweg.library.optimizers.momentum import MomentumOptimizer
from thalweg.library.optimizers.optimizer import Optimizer
from thalweg.library.optimizers.proximal_adagrad import ProximalAdagradOptimizer
from thalweg.library.optimizers.proximal_gradient_descent import ProximalGradientDescentOptimizer
from thalweg.library.optimizers.rmsprop import RMSPropOptimizer
from thalweg.library.optimizers.sync_replicas import SyncReplicasOptimizer
from thalweg.library.queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from thalweg.library.training_util import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)

__getattr__ = missing(__name__)

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "ClusterDef",
    "ClusterSpec",
    "Coordinator",
    "ExponentialMovingAverage",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "JobDef",
    "LooperThread",
    "MomentumOptimizer",
    "Optimizer",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "QueueRunner",
    "RMSPropOptimizer",
    "SyncReplicasOptimizer",
    "add_queue_runner",
    "assert_global_step",
    "batch",
    "batch_join",
    "cosine_decay",
    "cosine_decay_restarts",
    "create_global_step",
    "exponential_decay",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "input_producer",
    "inverse_time_decay",
    "limit_epochs",
    "linear_cosine_decay",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
    "queue_runner",
    "range_input_producer",
    "replica_device_setter",
    "shuffle_batch",
    "shuffle_batch_join",
    "slice_input_producer",
    "start_queue_runners",
    "string_input_producer",
]
