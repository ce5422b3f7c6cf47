"""tf.random. Names from thalweg.library; what each does is said there."""

from thalweg.library.candidate_sampling import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from thalweg.library.missing import missing
from thalweg.library.random_ops import (
    categorical,
    gamma,
    multinomial,
    poisson,
    stateless_categorical,
    stateless_multinomial,
    stateless_normal,
    stateless_truncated_normal,
    stateless_uniform,
    truncated_normal,
)
from thalweg.library.random_ops import random_normal as normal
from thalweg.library.random_ops import random_shuffle as shuffle
from thalweg.library.random_ops import random_uniform as uniform
from thalweg.library.random_seed import get_seed, set_random_seed

__getattr__ = missing(__name__)

__all__ = [
    "all_candidate_sampler",
    "categorical",
    "fixed_unigram_candidate_sampler",
    "gamma",
    "get_seed",
    "learned_unigram_candidate_sampler",
    "log_uniform_candidate_sampler",
    "multinomial",
    "normal",
    "poisson",
    "set_random_seed",
    "shuffle",
    "stateless_categorical",
    "stateless_multinomial",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]
