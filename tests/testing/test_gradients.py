"""assert_gradients_match finds a wrong gradient, and nothing else."""

import numpy as np
import pytest

import thalweg as tf
from thalweg.testing.gradients import assert_gradients_match

A = np.array([[0.5, -1.0], [2.0, 0.25]])


def test_right_gradients_pass() -> None:
    assert_gradients_match(lambda a, b: tf.sin(a) * b, A, A + 1)


def test_a_wrong_gradient_is_found() -> None:
    wrong = tf.custom_gradient(lambda x: (x * x, lambda dy: dy))
    with pytest.raises(AssertionError, match="by input 0 differs"):
        assert_gradients_match(wrong, A)


def test_inputs_may_be_left_out() -> None:
    wrong = tf.custom_gradient(lambda x: (x * x, lambda dy: dy))
    assert_gradients_match(lambda a, b: wrong(a) + b * 2.0, A, A, wrt=[1])
