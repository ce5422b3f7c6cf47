"""tf.train: optimizers, decay, global step. Names from thalweg.library; what each does is said there."""

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
    "ExponentialMovingAverage",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "RMSPropOptimizer",
    "SyncReplicasOptimizer",
    "assert_global_step",
    "cosine_decay",
    "cosine_decay_restarts",
    "create_global_step",
    "exponential_decay",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "inverse_time_decay",
    "linear_cosine_decay",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
]
