import pickle
from types import SimpleNamespace

import pytest

from thalweg.base import errors

CODES = {  # TensorFlow's numbers
    "Cancelled": 1,
    "Unknown": 2,
    "InvalidArgument": 3,
    "DeadlineExceeded": 4,
    "NotFound": 5,
    "AlreadyExists": 6,
    "PermissionDenied": 7,
    "ResourceExhausted": 8,
    "FailedPrecondition": 9,
    "Aborted": 10,
    "OutOfRange": 11,
    "Unimplemented": 12,
    "Internal": 13,
    "Unavailable": 14,
    "DataLoss": 15,
    "Unauthenticated": 16,
}


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_classes_and_codes(name: str, code: int) -> None:
    cls = getattr(errors, f"{name}Error")
    error = cls("node", None, "text")
    assert isinstance(error, errors.OpError)
    assert (error.node_def, error.op, error.message, error.error_code) == ("node", None, "text", code)
    constant = "".join(f"_{char}" if char.isupper() else char for char in name).upper().lstrip("_")
    assert getattr(errors, constant) == code
    assert errors.exception_type_from_error_code(code) is cls
    assert errors.error_code_from_exception_type(cls) == code
    assert f"{name}Error" in (errors.__doc__ or "")


def test_codes_without_a_class() -> None:
    assert errors.OK == 0
    for code in (0, 17):
        with pytest.raises(KeyError):
            errors.exception_type_from_error_code(code)
    with pytest.raises(KeyError, match="OpError"):
        errors.error_code_from_exception_type(errors.OpError)
    assert errors.OpError(None, None, "text", 15).error_code == 15


def test_subclass_has_the_code_of_its_class() -> None:
    class StaleTaskError(errors.AbortedError):
        pass

    assert errors.error_code_from_exception_type(StaleTaskError) == errors.ABORTED


def test_text_names_the_place() -> None:
    op = SimpleNamespace(name="y", type="MatMul", origin="train.py:41: logits = tf.matmul(x, w)")
    error = errors.InvalidArgumentError(None, op, "inner dimensions differ")
    assert str(error) == "inner dimensions differ\n  made at train.py:41: logits = tf.matmul(x, w)"
    assert error.op is op
    assert str(errors.InternalError(None, None, "text")) == "text"
    for nowhere in (SimpleNamespace(name="y", type="Add", origin=()), SimpleNamespace(name="y", type="Add")):
        assert str(errors.InternalError(None, nowhere, "text")) == "text"


def test_a_copy_that_travels_keeps_the_place_and_drops_the_operation() -> None:
    op = SimpleNamespace(name="y", type="MatMul", origin="train.py:41: y")
    copy = pickle.loads(pickle.dumps(errors.NotFoundError("node", op, "gone")))
    assert type(copy) is errors.NotFoundError
    assert (copy.node_def, copy.op, copy.error_code) == ("node", None, errors.NOT_FOUND)
    assert str(copy) == "gone\n  made at train.py:41: y"
