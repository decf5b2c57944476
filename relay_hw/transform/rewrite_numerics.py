"""RewriteNumerics: elementwise float32 expressions by equal ones with a smaller error, or with fewer operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from relay_hw.errors import InputError
from relay_hw.ir.expr import Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external
from relay_hw.transform.numeric.error import Sampler
from relay_hw.transform.numeric.expressions import Expression, expressions, written
from relay_hw.transform.numeric.samplers import ALL, Ranges, Samples, Seen, from_ranges, from_samples, limits, observed
from relay_hw.transform.numeric.terms import Term, text
from relay_hw.transform.redirect import redirect

if TYPE_CHECKING:
    from relay_hw.transform.numeric.pieces import Pieces


class RewriteNumerics(FunctionPass):
    """Equality saturation over a table of identities of real numbers, judged by measured error against exact results.

    It takes the expression with the least mean bits of error, different ones for parts of a tensor's range where that
    pays; with a `bound` the one with the fewest operators whose mean error grows by at most so many bits. Errors are
    measured on what `samples` make of an expression's arguments, inputs of `main` by name with the samples on the first
    axis; without them on floats drawn from `ranges` of parameters, by default all floats. Where the exact result is no
    float, nothing is measured. Raises UnsupportedError where there is an expression to rewrite, and egglog or mpmath is
    not installed.
    """

    name = "rewrite-numerics"
    opt_level = 4
    pins_effects = True

    def __init__(
        self, bound: float | None = None, *, samples: Samples | None = None, ranges: Ranges | None = None
    ) -> None:
        if bound is not None and not bound >= 0:
            raise InputError(f"bound must be at least 0 bits, not {bound}")
        for name, (low, high) in (ranges or {}).items():
            if not ALL[0] <= low < high <= ALL[1]:
                raise InputError(f"range of {name} must be from a finite float to a larger one, not {low} to {high}")
        self.bound = bound
        self.samples = samples
        self.ranges = ranges or {}

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        found = expressions(function, repeats=self.bound is None)
        if not found:
            return function
        seen = {} if self.samples is None else observed(mod, function, found, self.samples)
        new = self._better(found, seen)
        result = redirect(function, new.get) if new else function
        assert isinstance(result, Function)
        return result

    def _better(self, found: Sequence[Expression], seen: Seen) -> dict[Expr, Expr]:
        """What stands for the roots of expressions that can be better; equal ones are searched once."""
        known: dict[object, Pieces | None] = {}
        new: dict[Expr, Expr] = {}
        for one in found:
            sampler = from_samples(one, seen)
            key = (text(one.term), *(limits(leaf, self.ranges) for leaf in one.leaves.values()))
            if sampler is not None or key not in known:
                known[key] = self._search(one.term, sampler or from_ranges(one, self.ranges))
            pieces = known[key]
            if pieces is not None and (expr := written(pieces, one)).checked_type == one.root.checked_type:
                new[one.root] = expr
        return new

    def _search(self, term: Term, sampler: Sampler) -> Pieces | None:
        """What is better than a term at points of `sampler`, if anything is."""
        from relay_hw.transform.numeric.saturate import require_packages

        require_packages()
        from relay_hw.transform.numeric.improve import improve

        improved = improve(term, sampler, self.bound)
        return None if improved is None else improved.pieces
