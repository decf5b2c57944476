"""Dimensions: numbers, dynamic ones, symbolic variables, and arithmetic on them in a normal form.

In: dimensions. Out: dimensions; equal polynomials are equal values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final


class Any:
    """A dimension whose size is known only at run time. One value, `ANY`; prints as `?`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "?"


ANY: Final = Any()
# No sensible program has a larger polynomial.
MAX_TERMS: Final = 1_000
_serial = count()


@dataclass(frozen=True, slots=True, eq=False)
class DimVar:
    """A symbolic dimension; equal only to itself."""

    name: str
    serial: int = field(default_factory=lambda: next(_serial), repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class ShapeVar(DimVar):
    """All dimensions of a tensor at once, any number of them; the only entry of a shape."""


@dataclass(frozen=True, slots=True)
class Quotient:
    """`numerator` divided by `denominator`, rounded down, if that is not a polynomial."""

    numerator: Dim
    denominator: Dim


Atom = DimVar | Quotient
# The factors of a product, in order; a power repeats its factor.
Monomial = tuple[Atom, ...]
Polynomial = dict[Monomial, int]


@dataclass(frozen=True, slots=True)
class DimExpr:
    """A polynomial of symbolic dimensions in normal form, neither a number nor a single variable."""

    terms: tuple[tuple[Monomial, int], ...]

    def __str__(self) -> str:
        return dim_text(self)


Dim = int | Any | DimVar | DimExpr


def polynomial(dim: Dim) -> Polynomial | None:
    """`dim` as coefficients by product; None for an unknown one."""
    match dim:
        case int():
            return {(): dim} if dim else {}
        case DimVar():
            return {(dim,): 1}
        case DimExpr(terms=terms):
            return dict(terms)
        case _:
            return None


def from_polynomial(terms: Mapping[Monomial, int]) -> Dim:
    """The dimension of a polynomial, in normal form."""
    kept = sorted(((product, factor) for product, factor in terms.items() if factor), key=_order)
    match kept:
        case []:
            return 0
        case [((), number)]:
            return number
        case [((DimVar() as var,), 1)]:
            return var
        case _:
            return DimExpr(tuple(kept))


def dim_add(*dims: Dim) -> Dim:
    """The sum."""
    if all(isinstance(dim, int) for dim in dims):
        return sum(dim for dim in dims if isinstance(dim, int))
    total: Polynomial = {}
    for dim in dims:
        terms = polynomial(dim)
        if terms is None:
            return ANY
        for product, factor in terms.items():
            total[product] = total.get(product, 0) + factor
    return from_polynomial(total)


def dim_mul(*dims: Dim) -> Dim:
    """The product. Raises ValueError for one of more than MAX_TERMS terms."""
    total: Polynomial = {(): 1}
    for dim in dims:
        terms = polynomial(dim)
        if terms is None:
            return ANY
        total = _times(total, terms)
    return from_polynomial(total)


def dim_sub(left: Dim, right: Dim) -> Dim:
    """The difference."""
    return dim_add(left, dim_mul(-1, right))


def dim_floordiv(left: Dim, right: Dim) -> Dim:
    """The quotient rounded down. Raises ZeroDivisionError."""
    if isinstance(left, Any) or isinstance(right, Any):
        return ANY
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    if left == right:
        return 1
    if not isinstance(right, int):
        exact = _exact_quotient(left, right)
        return exact if exact is not None else from_polynomial({(Quotient(left, right),): 1})
    if right < 1:
        raise ZeroDivisionError("divisor of a dimension must be at least 1")
    whole: Polynomial = {}
    rest: Polynomial = {}
    for product, factor in (polynomial(left) or {}).items():
        whole[product], rest[product] = divmod(factor, right)
    left_over = from_polynomial(rest)
    if isinstance(left_over, int):
        return from_polynomial(whole)
    return dim_add(from_polynomial(whole), from_polynomial({(Quotient(left_over, right),): 1}))


def dim_mod(left: Dim, right: Dim) -> Dim:
    """The remainder of the quotient rounded down."""
    return dim_sub(left, dim_mul(right, dim_floordiv(left, right)))


def substitute_dim(dim: Dim, lookup: Callable[[DimVar], Dim]) -> Dim:
    """`dim` with every variable replaced."""
    match dim:
        case DimVar():
            return lookup(dim)
        case DimExpr(terms=terms):
            return dim_add(*(dim_mul(factor, *(_atom_value(a, lookup) for a in product)) for product, factor in terms))
        case _:
            return dim


def dim_vars(dim: Dim) -> Iterator[DimVar]:
    """The variables in `dim`, also those inside of quotients."""
    match dim:
        case DimVar():
            yield dim
        case DimExpr(terms=terms):
            for product, _ in terms:
                for atom in product:
                    parts = (atom.numerator, atom.denominator) if isinstance(atom, Quotient) else (atom,)
                    for part in parts:
                        yield from dim_vars(part)
        case _:
            return


def dim_text(dim: Dim, name: Callable[[DimVar], str] = lambda var: var.name) -> str:
    """`dim` as the text format writes it; `name` names the variables."""
    match dim:
        case DimVar():
            return name(dim)
        case DimExpr(terms=terms):
            # Something positive first, where there is something.
            first = next((index for index, (_, factor) in enumerate(terms) if factor > 0), 0)
            ordered = (terms[first], *terms[:first], *terms[first + 1 :])
            pieces = [_term_text(product, factor, name) for product, factor in ordered]
            return "".join(_signed(piece, is_first=index == 0) for index, piece in enumerate(pieces))
        case _:
            return str(dim)


def is_at_least(dim: Dim, bound: int) -> bool:
    """Whether `dim` is provably at least `bound`, given that all variables are at least 0."""
    terms = polynomial(dim)
    if terms is None:
        return False
    return terms.get((), 0) >= bound and all(factor >= 0 for product, factor in terms.items() if product)


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for a, x in left.items():
        for b, y in right.items():
            product = tuple(sorted((*a, *b), key=_atom_order))
            total[product] = total.get(product, 0) + x * y
            if len(total) > MAX_TERMS or len(product) > MAX_TERMS:
                raise ValueError(f"dimension must have at most {MAX_TERMS} terms")
    return total


def _exact_quotient(left: Dim, right: Dim) -> Dim | None:
    """The quotient by a single product, if every term of `left` contains it."""
    divisor = polynomial(right) or {}
    if len(divisor) != 1:
        return None
    ((factors, number),) = divisor.items()
    total: Polynomial = {}
    for product, factor in (polynomial(left) or {}).items():
        rest = _without(product, factors)
        if rest is None or factor % number:
            return None
        total[rest] = factor // number
    return from_polynomial(total)


def _without(product: Monomial, factors: Sequence[Atom]) -> Monomial | None:
    rest = list(product)
    for factor in factors:
        if factor not in rest:
            return None
        rest.remove(factor)
    return tuple(rest)


def _atom_value(atom: Atom, lookup: Callable[[DimVar], Dim]) -> Dim:
    if isinstance(atom, DimVar):
        return lookup(atom)
    return dim_floordiv(substitute_dim(atom.numerator, lookup), substitute_dim(atom.denominator, lookup))


def _order(term: tuple[Monomial, int]) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Sort key of terms: longer products first, then by name; the number is last."""
    return -len(term[0]), tuple(map(_atom_order, term[0]))


def _atom_order(atom: Atom) -> tuple[str, int]:
    return (atom.name, atom.serial) if isinstance(atom, DimVar) else (f"~{_atom_text(atom, str)}", 0)


def _atom_text(atom: Atom, name: Callable[[DimVar], str]) -> str:
    if isinstance(atom, DimVar):
        return name(atom)
    return f"floordiv({dim_text(atom.numerator, name)}, {dim_text(atom.denominator, name)})"


def _term_text(product: Monomial, factor: int, name: Callable[[DimVar], str]) -> str:
    factors = [_atom_text(atom, name) for atom in product]
    if not factors:
        return str(factor)
    if factor == -1:
        return f"-{' * '.join(factors)}"
    return " * ".join([str(factor), *factors] if factor != 1 else factors)


def _signed(piece: str, is_first: bool) -> str:
    if is_first:
        return piece
    return f" - {piece[1:]}" if piece.startswith("-") else f" + {piece}"
