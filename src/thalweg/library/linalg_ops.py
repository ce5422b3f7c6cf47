"""Linear algebra on the last two axes."""

from __future__ import annotations

from typing import Any

from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The lower triangular L with L L^T = input."""
    return emit("Cholesky", input, name=name)


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross product of vectors of three elements."""
    return emit("Cross", a, b, name=name)


def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """The determinants."""
    return emit("MatrixDeterminant", input, name=name)


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverses (of the adjoints)."""
    return emit("MatrixInverse", input, adjoint=adjoint, name=name)


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The X with matrix X = rhs."""
    return emit("MatrixSolve", matrix, rhs, adjoint=adjoint, name=name)


def matrix_square_root(input: Any, name: str | None = None) -> Tensor:
    """The principal square roots."""
    return emit("MatrixSquareRoot", input, name=name)


def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The X with matrix X = rhs, for a triangular matrix."""
    return emit("MatrixTriangularSolve", matrix, rhs, lower=lower, adjoint=adjoint, name=name)


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """The matrices with zeros outside a band; a negative number keeps the whole triangle."""
    return emit("MatrixBandPart", input, num_lower, num_upper, name=name)


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(q, r): orthogonal and upper triangular, with q r = input."""
    return emit("Qr", input, full_matrices=full_matrices, name=name)


def log_matrix_determinant(input: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(sign, log of the absolute value) of the determinants."""
    return emit("LogMatrixDeterminant", input, name=name)
