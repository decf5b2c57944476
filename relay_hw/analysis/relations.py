"""Deferred typing rules: type relations and projections. In: argument types. Out: a result, or None."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relay_hw.analysis.layouts import check_arguments, is_laid_out, result_layout
from relay_hw.analysis.unify import TypeSolver
from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, TupleGetItem
from relay_hw.ir.types import IncompleteType, TensorType, TupleType, Type, has_unknown_rank

Attempt = Callable[[Sequence[Type]], Type | None]

# Exceptions of type relations for attributes of an unexpected type.
_UNFORESEEN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(slots=True, eq=False)
class Deferred:
    """A result that depends on `types`; `attempt` computes it once enough is known."""

    node: Expr
    types: Sequence[Type]
    attempt: Attempt
    result: IncompleteType | None = None
    is_done: bool = False


@dataclass(slots=True)
class _ArgumentSolver:
    """The solver for one relation, which names the argument that does not fit."""

    call: Call
    name: str
    types: Sequence[Type]
    solver: TypeSolver

    def unify(self, left: Type, right: Type) -> Type:
        try:
            return self.solver.unify(left, right)
        except TypeCheckError as error:
            for index, ty in reversed(list(enumerate(self.types))):
                if ty is left or ty is right:
                    wanted = self.solver.resolve(right if ty is left else left)
                    given = self.solver.resolve(ty)
                    message = f"argument {index + 1} of {self.name} must be {wanted}, not {given}"
                    raise TypeCheckError(message, self.call.span) from None
            raise error

    def resolve(self, ty: Type) -> Type:
        return self.solver.resolve(ty)


def operator_relation(call: Call, op: Op, solver: TypeSolver) -> Attempt:
    """The relation of `op` for one call. Raises TypeCheckError at once for wrong attributes or argument counts."""
    count = op.num_inputs
    if count >= 0 and len(call.args) != count:
        raise TypeCheckError(
            f"{op.name} must have {count} argument{'s' * (count != 1)}, not {len(call.args)}", call.span
        )
    if not isinstance(call.attrs, op.attrs_type or type(None)):
        wanted = op.attrs_type.__name__ if op.attrs_type else "absent"
        raise TypeCheckError(f"attributes of {op.name} must be {wanted}, not {call.attrs!r}", call.span)

    def attempt(types: Sequence[Type]) -> Type | None:
        _check_ranks(call, op, types)
        try:
            has_layouts = is_laid_out(types)
            if has_layouts:
                check_arguments(call, op, types)
            found = op.relation(types, call.attrs, _ArgumentSolver(call, op.name, types, solver))
            return result_layout(call, op, types, found) if has_layouts and found is not None else found
        except TypeCheckError as error:
            raise error if error.span is not None else TypeCheckError(error.message, call.span) from None
        except _UNFORESEEN as error:
            shown = ", ".join(map(str, types))
            raise TypeCheckError(
                f"arguments and attributes of {op.name} must fit together, not ({shown}) with {call.attrs}: {error}",
                call.span,
            ) from error

    return attempt


def _check_ranks(call: Call, op: Op, types: Sequence[Type]) -> None:
    """Check that rank-polymorphic shapes are used by elementwise operators only. Raises TypeCheckError."""
    tensors = [leaf for ty in types for leaf in (ty.fields if isinstance(ty, TupleType) else (ty,))]
    known = [ty for ty in tensors if isinstance(ty, TensorType)]
    whole = next((ty for ty in known if has_unknown_rank(ty)), None)
    if whole is None:
        return
    is_plain = op.pattern is FusionPattern.ELEMWISE or (op.pattern is FusionPattern.BROADCAST and op.attrs_type is None)
    if not is_plain:
        raise TypeCheckError(f"an argument of {op.name} must have a shape of known rank, not {whole}", call.span)
    for ty in known:
        if ty.shape not in ((), whole.shape):
            shown = f"{whole} and {ty}"
            raise TypeCheckError(f"arguments of {op.name} must have one shape or be scalars, not {shown}", call.span)


def projection(node: TupleGetItem) -> Attempt:
    """The type of a field of a tuple."""

    def attempt(types: Sequence[Type]) -> Type | None:
        (ty,) = types
        if isinstance(ty, IncompleteType):
            return None
        if not isinstance(ty, TupleType):
            raise TypeCheckError(f"value before .{node.index} must be a tuple, not {ty}", node.span)
        if not 0 <= node.index < len(ty.fields):
            count = len(ty.fields)
            raise TypeCheckError(
                f"index of a tuple of {count} field{'s' * (count != 1)} must be in [0, {count}), not {node.index}",
                node.span,
            )
        return ty.fields[node.index]

    return attempt
