"""Solves equations and conditions on dimensions. In: pairs of dimensions. Out: flexible ones, or TypeCheckError.

A flexible dimension belongs to one use of a function and takes a value; any other symbolic one stands for itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from relay_hw.errors import TypeCheckError
from relay_hw.ir.dims import (
    ANY,
    Any,
    Dim,
    DimExpr,
    DimVar,
    Polynomial,
    Quotient,
    dim_add,
    dim_sub,
    dim_vars,
    from_polynomial,
    is_at_least,
    polynomial,
    substitute_dim,
)
from relay_hw.ir.types import Comparison, Condition
from relay_hw.span import Span


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A condition that is not decided yet; `what` names it in messages."""

    condition: Condition
    what: str
    place: Span | None


class DimSolver:
    """Values of flexible dimensions, and what functions assume of their own."""

    def __init__(self) -> None:
        self.place: Span | None = None
        self._known: dict[DimVar, Dim | None] = {}
        self._equations: list[tuple[Dim, Dim, Span | None]] = []
        self._conditions: list[_Waiting] = []
        self._rewrites: dict[DimVar, Dim] = {}
        self._zeros: list[Dim] = []
        self._at_least_zero: list[Dim] = []
        self._nonzero: list[Dim] = []

    @property
    def is_used(self) -> bool:
        """Whether there is any flexible dimension."""
        return bool(self._known)

    def flexible(self, var: DimVar) -> None:
        """Let `var` take a value."""
        self._known[var] = None

    def value(self, dim: Dim) -> Dim:
        """`dim` with known values substituted."""
        if not self._known or isinstance(dim, (int, Any)):
            return dim
        return substitute_dim(dim, self._lookup)

    def final(self, dim: Dim) -> Dim:
        """`dim` with known values substituted; flexible dimensions without a value become `?`."""
        return substitute_dim(self.value(dim), lambda var: ANY if var in self._known else var)

    def unify(self, left: Dim, right: Dim) -> Dim:
        """Unify two dimensions; `?` matches any. Raises TypeCheckError."""
        a, b = self.value(left), self.value(right)
        if a is b or a == b:
            return a
        if isinstance(a, Any) or isinstance(b, Any):
            for part in (a, b):
                if isinstance(part, DimVar) and part in self._known:
                    self._known[part] = ANY
            return ANY
        match self._solve(dim_sub(a, b)):
            case True:
                self._retry()
                return self.value(a)
            case False:
                raise TypeCheckError(f"dimension must be {a}, not {b}")
            case None:
                self._equations.append((a, b, self.place))
                return a

    def assume(self, condition: Condition) -> None:
        """Assume `condition`: it belongs to a function, whose callers must prove it."""
        left, right = condition.left.dim, condition.right.dim
        match condition.comparison:
            case Comparison.EQ:
                self._assume_zero(dim_sub(left, right))
            case Comparison.NE:
                self._nonzero.append(dim_sub(left, right))
            case Comparison.GE:
                self._at_least_zero.append(dim_sub(left, right))
            case Comparison.GT:
                self._at_least_zero.append(dim_add(dim_sub(left, right), -1))
            case Comparison.LE:
                self._at_least_zero.append(dim_sub(right, left))
            case Comparison.LT:
                self._at_least_zero.append(dim_add(dim_sub(right, left), -1))

    def require(self, condition: Condition, what: str) -> None:
        """Require `condition`, now or once more is known. Raises TypeCheckError if it provably does not hold."""
        if condition.comparison is Comparison.EQ:
            try:
                self.unify(condition.left.dim, condition.right.dim)
            except TypeCheckError:
                raise self._broken(condition, what) from None
            return
        holds = self._holds(condition)
        if holds is False:
            raise self._broken(condition, what)
        if holds is None:
            self._conditions.append(_Waiting(condition, what, self.place))

    def finish(self) -> None:
        """Check that all equations and conditions are decided. Raises TypeCheckError."""
        self._retry()
        for left, right, place in self._equations:
            shown = self.value(left), self.value(right)
            raise TypeCheckError(f"dimension must be {shown[0]}, not {shown[1]}: nothing fixes its variables", place)
        for waiting in self._conditions:
            if self._holds(waiting.condition) is not True:
                error = self._broken(waiting.condition, waiting.what)
                raise TypeCheckError(error.message, waiting.place)
        self._conditions.clear()

    def _lookup(self, var: DimVar) -> Dim:
        known = self._known.get(var)
        if known is None:
            return var
        found = self.value(known)
        self._known[var] = found
        return found

    def _solve(self, difference: Dim) -> bool | None:
        """Solve `difference == 0`: True if solved, False if impossible, None if still undecided."""
        reduced = self._reduced(difference)
        if reduced == 0:
            return True
        if isinstance(reduced, int):
            return False
        terms = polynomial(reduced) or {}
        flexible = [var for var in dict.fromkeys(dim_vars(reduced)) if var in self._known]
        if not flexible:
            return False
        for var in flexible:
            found = _isolated(terms, var)
            if found is not None:
                self._known[var] = found
                return True
        return False if _is_indivisible(terms) else None

    def _reduced(self, dim: Dim) -> Dim:
        """`dim` under the assumptions."""
        found = substitute_dim(dim, self._rewritten) if self._rewrites else dim
        terms = polynomial(found)
        if not self._zeros or not terms:
            return found
        for zero in self._zeros:
            known = polynomial(zero) or {}
            if known.keys() == terms.keys():
                ratios = {terms[key] / known[key] for key in known}
                if len(ratios) == 1:
                    return 0
        return found

    def _rewritten(self, var: DimVar) -> Dim:
        found = self._rewrites.get(var)
        return var if found is None else substitute_dim(found, self._rewritten)

    def _assume_zero(self, difference: Dim) -> None:
        reduced = self._reduced(difference)
        terms = polynomial(reduced) or {}
        for var in dict.fromkeys(dim_vars(reduced)):
            found = _isolated(terms, var, only_unit=True)
            if found is not None:
                self._rewrites[var] = found
                return
        if terms:
            self._zeros.append(reduced)

    def _retry(self) -> None:
        """Try waiting equations until none makes progress."""
        progress = bool(self._equations)
        while progress:
            progress = False
            waiting, self._equations = self._equations, []
            for left, right, place in waiting:
                a, b = self.value(left), self.value(right)
                if isinstance(a, Any) or isinstance(b, Any):
                    continue
                outcome = self._solve(dim_sub(a, b))
                if outcome is False:
                    raise TypeCheckError(f"dimension must be {a}, not {b}", place)
                if outcome is None:
                    self._equations.append((left, right, place))
                progress = progress or bool(outcome)

    def _holds(self, condition: Condition) -> bool | None:
        """Whether `condition` provably holds or not; None if undecided."""
        left, right = self.value(condition.left.dim), self.value(condition.right.dim)
        if isinstance(left, Any) or isinstance(right, Any):
            # Known only at run time.
            return True
        difference = self._reduced(dim_sub(left, right))
        match condition.comparison:
            case Comparison.EQ:
                return True if difference == 0 else False if isinstance(difference, int) else None
            case Comparison.NE:
                if isinstance(difference, int):
                    return difference != 0
                return True if self._is_nonzero(difference) else None
            case Comparison.GE:
                return self._surely_at_least(difference, 0)
            case Comparison.GT:
                return self._surely_at_least(difference, 1)
            case Comparison.LE:
                return self._surely_at_least(_negative(difference), 0)
            case Comparison.LT:
                return self._surely_at_least(_negative(difference), 1)

    def _is_nonzero(self, dim: Dim) -> bool:
        if self._surely_at_least(dim, 1) or self._surely_at_least(_negative(dim), 1):
            return True
        return any(self._reduced(known) in (dim, _negative(dim)) for known in self._nonzero)

    def _surely_at_least(self, dim: Dim, bound: int) -> bool | None:
        if isinstance(dim, int):
            return dim >= bound
        if is_at_least(dim, bound):
            return True
        if any(is_at_least(dim_sub(dim, self._reduced(known)), bound) for known in self._at_least_zero):
            return True
        return None

    def _broken(self, condition: Condition, what: str) -> TypeCheckError:
        left, right = self.value(condition.left.dim), self.value(condition.right.dim)
        return TypeCheckError(f"{what} must have {left} {condition.comparison.value} {right}", self.place)


def _negative(dim: Dim) -> Dim:
    return dim_sub(0, dim)


def _isolated(terms: Polynomial, var: DimVar, only_unit: bool = False) -> Dim | None:
    """The value of `var` that makes the polynomial zero, if it occurs once, linearly, with a factor dividing all."""
    factor = terms.get((var,))
    if factor is None or (only_unit and abs(factor) != 1):
        return None
    rest = {product: number for product, number in terms.items() if product != (var,)}
    if any(_occurs(var, product) for product in rest) or any(number % factor for number in rest.values()):
        return None
    found = from_polynomial({product: -number // factor for product, number in rest.items()})
    # No dimension is negative.
    return None if isinstance(found, int) and found < 0 else found


def _occurs(var: DimVar, product: tuple[DimVar | Quotient, ...]) -> bool:
    return any(
        atom is var if isinstance(atom, DimVar) else var in dim_vars(DimExpr((((atom,), 1),))) for atom in product
    )


def _is_indivisible(terms: Polynomial) -> bool:
    """Whether no integers make the polynomial zero: all factors share a divisor that the number lacks.

    Also where one variable alone would have to be negative.
    """
    factors = [number for product, number in terms.items() if product]
    number = terms.get((), 0)
    shared = 0
    for factor in factors:
        shared = _gcd(shared, abs(factor))
    if number % shared:
        return True
    sign = 1 if number > 0 else -1
    return number != 0 and all(factor * sign > 0 for factor in factors)


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a
