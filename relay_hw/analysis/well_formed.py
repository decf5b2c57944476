"""Checks structural rules. In: a module or expression. Out: nothing, or WellFormedError."""

from __future__ import annotations

from relay_hw.analysis.call_graph import call_graph
from relay_hw.analysis.scope import find_scopes
from relay_hw.analysis.variables import all_vars
from relay_hw.errors import WellFormedError
from relay_hw.ir.expr import Expr
from relay_hw.ir.module import IRModule


def check_well_formed(program: IRModule | Expr) -> None:
    """Check that each variable is bound once and used only in its scope, and that globals are defined.

    A bare expression may have free variables. Raises WellFormedError.
    """
    if not isinstance(program, IRModule):
        _check(program, "", is_closed=False)
        return
    call_graph(program)
    for name, function in program.functions.items():
        _check(function, f" in @{name}", is_closed=True)


def well_formed(program: IRModule | Expr) -> bool:
    """Whether `check_well_formed` accepts `program`."""
    try:
        check_well_formed(program)
    except WellFormedError:
        return False
    return True


def _check(expr: Expr, where: str, is_closed: bool) -> None:
    scopes = find_scopes(expr)
    for var in scopes.bound_twice:
        raise WellFormedError(f"%{var.name_hint}{where} must be bound once, not twice", var.span)
    for var in all_vars(expr):
        binder = scopes.binders.get(var)
        if binder is None and is_closed:
            raise WellFormedError(f"%{var.name_hint}{where} must be bound before it is used", var.span)
        if binder is not None and not binder.holds(scopes.of[var]):
            raise WellFormedError(f"%{var.name_hint}{where} must be used only where it is bound", var.span)
