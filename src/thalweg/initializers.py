"""tf.initializers. Names from thalweg.library; what each does is said there."""

from thalweg.library.initializers import constant_initializer as constant
from thalweg.library.initializers import glorot_normal_initializer as glorot_normal
from thalweg.library.initializers import glorot_uniform_initializer as glorot_uniform
from thalweg.library.initializers import he_normal, he_uniform, lecun_normal, lecun_uniform
from thalweg.library.initializers import identity_initializer as identity
from thalweg.library.initializers import ones_initializer as ones
from thalweg.library.initializers import orthogonal_initializer as orthogonal
from thalweg.library.initializers import random_normal_initializer as random_normal
from thalweg.library.initializers import random_uniform_initializer as random_uniform
from thalweg.library.initializers import truncated_normal_initializer as truncated_normal
from thalweg.library.initializers import uniform_unit_scaling_initializer as uniform_unit_scaling
from thalweg.library.initializers import variance_scaling_initializer as variance_scaling
from thalweg.library.initializers import zeros_initializer as zeros
from thalweg.library.missing import missing
from thalweg.library.resources import tables_initializer
from thalweg.library.variables import global_variables_initializer as global_variables
from thalweg.library.variables import local_variables_initializer as local_variables
from thalweg.library.variables import variables_initializer as variables

__getattr__ = missing(__name__)

__all__ = [
    "constant",
    "global_variables",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "local_variables",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "tables_initializer",
    "truncated_normal",
    "uniform_unit_scaling",
    "variables",
    "variance_scaling",
    "zeros",
]
