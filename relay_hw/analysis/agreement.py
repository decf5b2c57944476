"""Makes types agree, or says what must be of which type; results that wait for types are computed once they are known.

In: types with holes. Out: types with fewer of them.
"""

from __future__ import annotations

from collections import deque

from relay_hw.analysis.describe import describe
from relay_hw.analysis.relations import Deferred
from relay_hw.analysis.unify import TypeSolver
from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Expr, GlobalVar, Var
from relay_hw.ir.types import IncompleteType, Type
from relay_hw.span import Span


class Agreement:
    """What is known of the types of one group of functions: a solver, and the results that wait for it."""

    def __init__(self) -> None:
        self.solver = TypeSolver(self._wake)
        self._waiting: dict[IncompleteType, list[Deferred]] = {}
        # Results to be tried again.
        self.ready: deque[Deferred] = deque()

    def agree(self, wanted: Type | None, given: Type, what: str, node: Expr, fallback: Span | None = None) -> Type:
        """Unify, or say that `what` must be `wanted`. Without `wanted` the type is `given`."""
        if wanted is None:
            return given
        # The place of a variable is its definition; the use is what is wrong.
        span = (fallback or node.span) if isinstance(node, (Var, GlobalVar)) else (node.span or fallback)
        return self.unify(wanted, given, what, span)

    def unify(self, wanted: Type, given: Type, what: str, span: Span | None) -> Type:
        """The type that both are, or an error at `span` that says that `what` must be `wanted`."""
        self.solver.dims.place = span
        try:
            return self.solver.unify(wanted, given)
        except TypeCheckError:
            shown = self.solver.resolve(wanted), self.solver.resolve(given)
            raise TypeCheckError(f"{what} must be {shown[0]}, not {shown[1]}", span) from None

    def merge(self, left: Type, right: Type, what: str, node: Expr) -> Type:
        """The type that both sides are, neither of which is the one that must change."""
        self.solver.dims.place = node.span
        try:
            return self.solver.unify(left, right)
        except TypeCheckError:
            shown = self.solver.resolve(left), self.solver.resolve(right)
            raise TypeCheckError(f"{what} must have one type, not {shown[0]} and {shown[1]}", node.span) from None

    def check_size(self, node: Expr, ty: Type) -> None:
        """Refuse the type of `node` where it is too large to be worked with."""
        try:
            self.solver.check_size(ty)
        except TypeCheckError as error:
            raise TypeCheckError(error.message, node.span) from None

    def defer(self, deferred: Deferred) -> Type:
        """The result of `deferred` if its arguments suffice; else a hole that is filled later."""
        found = self._attempt(deferred)
        if found is not None:
            return found
        deferred.result = IncompleteType()
        return deferred.result

    def _attempt(self, deferred: Deferred) -> Type | None:
        types = [self.solver.resolve(ty) for ty in deferred.types]
        found = deferred.attempt(types)
        if found is not None:
            return found
        holes = dict.fromkeys(hole for ty in types for hole in self.solver.holes(ty))
        if not holes:
            shown = ", ".join(map(str, types))
            raise TypeCheckError(
                f"arguments of {describe(deferred.node)} must have types that fix its result, not ({shown})",
                deferred.node.span,
            )
        for hole in holes:
            self._waiting.setdefault(hole, []).append(deferred)
        return None

    def _wake(self, hole: IncompleteType) -> None:
        self.ready.extend(self._waiting.pop(hole, ()))

    def drain(self) -> None:
        """Try every result again whose holes were filled, until none is left."""
        while self.ready:
            deferred = self.ready.popleft()
            if deferred.is_done:
                continue
            found = self._attempt(deferred)
            if found is None:
                continue
            deferred.is_done = True
            assert deferred.result is not None
            self.unify(found, deferred.result, f"result of {describe(deferred.node)}", deferred.node.span)
