"""Rounding by second order, as GPTQ (Frantar 2022, after Optimal Brain Surgeon): the error of each rounded weight is
made up for by those that are not rounded yet, as far as the layer's inputs let them.

In: rows and the columns that they meet. Out: integers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
DAMPING = 0.02
SHRINKAGE = 2.0


def covariance(left: Float64, right: Float64) -> Float64:
    """Second moments [groups, depth, depth] of two sets of columns around their means."""
    a = left - left.mean(axis=2, keepdims=True)
    b = right - right.mean(axis=2, keepdims=True)
    return np.matmul(a, b.swapaxes(1, 2)) / left.shape[2]


def damped(moments: Float64, count: int) -> Float64:
    """The moments of `count` columns, with a share of their mean added to the diagonal.

    The share grows with few columns; inputs that never change do no harm.
    """
    diagonal = np.einsum("gkk->gk", moments)
    share = DAMPING + SHRINKAGE * moments.shape[1] / count
    extra = share * diagonal.mean(axis=1) + 1e-12
    return moments + extra[:, None, None] * np.eye(moments.shape[1])


def adapt(rows: Float64, wanted: Float64, given: Float64) -> Float64:
    """Rows whose products with `given` columns come nearest to those of `rows` with `wanted` ones.

    Ridge regression towards `rows`: noise that the inputs brought along is undone where the data shows how.
    """
    moments = covariance(given, given)
    change = np.matmul(rows, covariance(wanted, given) - moments)
    return rows + np.matmul(change, np.linalg.inv(damped(moments, given.shape[2])))


def second_order(rows: Float64, steps: Float64, given: Float64, limit: int) -> NDArray[np.int8]:
    """Integers [groups, channels, depth] for `rows` with `steps`, one for each, at most `limit` in magnitude.

    `given`: columns that the rows meet. Weights with the largest inputs are rounded first.
    """
    groups, _, depth = rows.shape
    hessian = damped(covariance(given, given), given.shape[2])
    order = np.argsort(-np.einsum("gkk->gk", hessian), axis=1, kind="stable")
    number = np.arange(groups)[:, None]
    sorted_hessian = hessian[number[:, :, None], order[:, :, None], order[:, None, :]]
    # Upper factor of the inverse: row k says how weights after k make up for the error of k.
    factor = np.linalg.cholesky(np.linalg.inv(sorted_hessian)).swapaxes(1, 2)
    left = np.take_along_axis(rows, order[:, None, :], axis=2).copy()
    steps = np.take_along_axis(np.broadcast_to(steps, rows.shape), order[:, None, :], axis=2)
    result = np.zeros(rows.shape, np.int8)
    for k in range(depth):
        step = steps[:, :, k]
        whole = np.clip(np.rint(left[:, :, k] / step), -limit, limit)
        error = (left[:, :, k] - whole * step) / factor[:, None, k, k]
        left[:, :, k + 1 :] -= error[:, :, None] * factor[:, None, k, k + 1 :]
        result[number, :, order[:, k : k + 1]] = whole.astype(np.int8)[:, None, :]
    return result
