"""Forward-mode differentiation by dual numbers, in a page: an oracle for gradients, of any order by nesting.

Stands in the place of PyTorch for the meanings of random programs. A dual number is an array with its tangent; the
parts of a nested one are dual numbers again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Dual:
    """A value and how fast it changes."""

    value: Any
    tangent: Any

    # numpy must leave the operators to this class.
    __array_ufunc__ = None

    def __add__(self, other: Any) -> Dual:
        a, b = self, lift(other)
        return Dual(a.value + b.value, a.tangent + b.tangent)

    def __mul__(self, other: Any) -> Dual:
        a, b = self, lift(other)
        return Dual(a.value * b.value, a.tangent * b.value + a.value * b.tangent)

    def __neg__(self) -> Dual:
        return self * -1.0

    def __sub__(self, other: Any) -> Dual:
        return self + lift(other) * -1.0

    def __rsub__(self, other: Any) -> Dual:
        return lift(other) - self

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, count: int) -> Dual:
        return self if count == 1 else self * self ** (count - 1)

    def sum(self) -> Dual:
        return Dual(self.value.sum(), self.tangent.sum())

    def __getitem__(self, place: Any) -> Dual:
        return Dual(self.value[place], self.tangent[place])

    def __gt__(self, other: Any) -> Any:
        return plain(self) > plain(other)

    def __lt__(self, other: Any) -> Any:
        return plain(self) < plain(other)

    def __le__(self, other: Any) -> Any:
        return plain(self) <= plain(other)

    def __ge__(self, other: Any) -> Any:
        return plain(self) >= plain(other)


def lift(value: Any) -> Dual:
    return value if isinstance(value, Dual) else Dual(value, value * 0.0)


def plain(value: Any) -> Any:
    return plain(value.value) if isinstance(value, Dual) else value


def _chain(function: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of arrays and of dual numbers, from the function and its derivative."""

    def apply(x: Any) -> Any:
        return Dual(apply(x.value), slope(x.value) * x.tangent) if isinstance(x, Dual) else function(x)

    return apply


class DualNumbers:
    """The functions of PyTorch that random programs use."""

    float64 = "float64"
    sin = staticmethod(_chain(np.sin, lambda x: DualNumbers.cos(x)))
    cos = staticmethod(_chain(np.cos, lambda x: -DualNumbers.sin(x)))
    exp = staticmethod(_chain(np.exp, lambda x: DualNumbers.exp(x)))
    tanh = staticmethod(_chain(np.tanh, lambda x: 1.0 + DualNumbers.tanh(x) * DualNumbers.tanh(x) * -1.0))
    reciprocal = staticmethod(_chain(lambda x: 1.0 / x, lambda x: -(DualNumbers.reciprocal(x) ** 2)))
    neg = staticmethod(lambda x: -x)
    add = staticmethod(lambda x, y: x + y)
    mul = staticmethod(lambda x, y: x * y)
    sub = staticmethod(lambda x, y: x - y)
    tensor = staticmethod(np.asarray)
    zeros = staticmethod(lambda count, dtype: np.zeros(count))
    ones = staticmethod(lambda count, dtype: np.ones(count))

    @staticmethod
    def sigmoid(x: Any) -> Any:
        return DualNumbers.reciprocal(1.0 + DualNumbers.exp(-x))

    @staticmethod
    def softmax(x: Any, axis: int) -> Any:
        powers = DualNumbers.exp(x)
        return powers * DualNumbers.reciprocal(powers.sum())

    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> Any:
        return x * condition + y * np.logical_not(condition)

    @staticmethod
    def stack(parts: Sequence[Any]) -> Any:
        if not any(isinstance(part, Dual) for part in parts):
            return np.stack([np.asarray(part) for part in parts])
        duals = [lift(part) for part in parts]
        return Dual(*(DualNumbers.stack(parts) for parts in zip(*((x.value, x.tangent) for x in duals), strict=True)))


def slopes(function: Callable[..., Any], values: Sequence[np.ndarray], order: int) -> list[np.ndarray]:
    """The gradient, or for order 2 that of the sum of all slopes, of a function of vectors."""
    if order == 1:
        return [np.array([plain(_along(function, values, at, place)) for place in range(len(value))])
                for at, value in enumerate(values)]  # fmt: skip

    def total(*inner: Any) -> Any:
        """The slope along all axes at once."""
        return lift(function(*(Dual(value, np.ones(2)) for value in inner))).tangent

    return slopes(total, values, order - 1)


def _along(function: Callable[..., Any], values: Sequence[np.ndarray], at: int, place: int) -> Any:
    unit = np.eye(len(values[at]))[place]
    given = [Dual(value, unit if index == at else np.zeros(len(value))) for index, value in enumerate(values)]
    return lift(function(*given)).tangent
