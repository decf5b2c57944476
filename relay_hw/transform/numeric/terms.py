"""Terms: elementwise operators on numbers and arguments, and their text, `(subtract (sqrt (add x 1)) (sqrt x))`.

In: text, or nodes made by a pass. Out: immutable trees whose heads are Relay's operators; equal subterms count once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.types import TensorType
from relay_hw.op import get

Floats: TypeAlias = NDArray[np.float32]

# Operators of terms, by their number of arguments.
UNARY: Final = (
    "negative", "abs", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos",
    "atan", "asinh", "acosh", "atanh", "sigmoid", "erf",
)  # fmt: skip
BINARY: Final = ("add", "subtract", "multiply", "divide", "power")
ARITY: Final[Mapping[str, int]] = {**dict.fromkeys(UNARY, 1), **dict.fromkeys(BINARY, 2)}


@dataclass(frozen=True, slots=True)
class Number:
    """A number, exactly."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument, by its name."""

    name: str


class Apply:
    """An operator on terms. Equal ones have equal hashes, which are computed once."""

    __slots__ = ("_hash", "args", "op")

    def __init__(self, op: str, args: Sequence[Term]) -> None:
        self.op = op
        self.args = tuple(args)
        self._hash = hash((op, self.args))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Apply)
            and self._hash == other._hash
            and self.op == other.op
            and self.args == other.args
        )  # fmt: skip

    def __repr__(self) -> str:
        return text(self)


Term: TypeAlias = "Number | Argument | Apply"


def subterms(root: Term) -> list[Term]:
    """`root` and all below it, operands first, equal ones once."""
    order: dict[Term, None] = {}

    def visit(term: Term) -> None:
        if term in order:
            return
        if isinstance(term, Apply):
            for one in term.args:
                visit(one)
        order[term] = None

    visit(root)
    return list(order)


def operators(root: Term) -> int:
    """How many operators `root` computes; equal subterms are computed once."""
    return sum(isinstance(one, Apply) for one in subterms(root))


def arguments(root: Term) -> list[str]:
    """Names of the arguments, in the order of their first use."""
    return [one.name for one in subterms(root) if isinstance(one, Argument)]


def text(root: Term) -> str:
    """The term as `parse` reads it."""
    match root:
        case Number(value=value):
            return str(value)
        case Argument(name=name):
            return name
        case Apply():
            return f"({' '.join([root.op, *map(text, root.args)])})"


def parse(source: str) -> Term:
    """The term that `source` writes. Raises ValueError for unknown operators and wrong numbers of arguments."""
    tokens = iter(re.findall(r"[()]|[^()\s]+", source))
    term = _read(next(tokens, ""), tokens)
    if (rest := next(tokens, None)) is not None:
        raise ValueError(f"a term must end where its parentheses do, not go on with {rest!r}")
    return term


def _read(token: str, tokens: Iterator[str]) -> Term:
    if token == "(":
        op = next(tokens, "")
        args: list[Term] = []
        while (one := next(tokens, "")) != ")":
            args.append(_read(one, tokens))
        if ARITY.get(op) != len(args):
            raise ValueError(f"({op} ...) must be an operator of terms with its arguments, not have {len(args)}")
        return Apply(op, args)
    if re.fullmatch(r"-?\d+(/\d+|\.\d+|\.\d+e-?\d+|e-?\d+)?", token):
        return Number(Fraction(token))
    if re.fullmatch(r"[A-Za-z_]\w*", token):
        return Argument(token)
    raise ValueError(f"a term must be a number, a name or an operator in parentheses, not {token!r}")


def apply_float(op: str, values: Sequence[Floats]) -> Floats:
    """The operator's reference semantics in float32, elementwise."""
    shape = np.broadcast_shapes(*(one.shape for one in values))
    with np.errstate(all="ignore"):
        return get(op).reference(None, values, TensorType(shape, "float32"))


def evaluate_float(root: Term, points: Mapping[str, Floats]) -> Floats:
    """`root` as float32 computes it at `points`: each operator's result is rounded, numbers once at the beginning."""
    values: dict[Term, Floats] = {}
    for term in subterms(root):
        match term:
            case Number(value=value):
                values[term] = rounded(value)
            case Argument(name=name):
                values[term] = points[name]
            case Apply():
                values[term] = apply_float(term.op, [values[one] for one in term.args])
    return values[root]


def rounded(value: Fraction) -> Floats:
    """A number as float32 has it."""
    with np.errstate(over="ignore"):
        return np.asarray(np.float32(float(value)))
