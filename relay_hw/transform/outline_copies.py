"""OutlineCopies: moves each copy between devices into a function of its own, so that a run can count and time it.

In: a module whose fragments are outlined by device. Out: the same with calls of fragments in place of `device_copy`.
"""

from __future__ import annotations

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Expr, Function, GlobalVar, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType, TensorType, TupleType, Type, TypeCall
from relay_hw.ir.visit import copy_with
from relay_hw.transform.base import Pass
from relay_hw.transform.fragment_bodies import is_closed
from relay_hw.transform.fragments import FRAGMENT
from relay_hw.transform.graph import TypedRewriter, is_external, is_op
from relay_hw.transform.names import numbered_name


class OutlineCopies(Pass):
    """The pass. Raises UnsupportedError for a copy of functions, references, or of a type that is not known."""

    name = "outline-copies"

    def transform(self, mod: IRModule) -> IRModule:
        copies = _Copies(set(mod.functions))
        functions: dict[str, Function] = {}
        for name, function in mod.functions.items():
            if is_external(function) or FRAGMENT in function.attrs:
                continue
            new = copies.rewrite(function)
            assert isinstance(new, Function)
            functions[name] = new
        return mod.with_functions({**functions, **copies.found}) if copies.found else mod


class _Copies(TypedRewriter):
    def __init__(self, taken: set[str]) -> None:
        super().__init__()
        self.found: dict[str, Function] = {}
        self._taken = taken

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if not is_op(old, "device_copy"):
            return new
        if not _can_move(old.type):
            raise UnsupportedError(f"device_copy must move tensors, not {old.type}", old.span)
        param = Var("x0", old.type, checked_type=old.type)
        inner = copy_with(new, args=(param,), checked_type=old.type)
        ty = FuncType((old.type,), old.type)
        name = numbered_name("copy", self._taken, len(self.found))
        self.found[name] = Function((param,), inner, old.type, attrs={FRAGMENT: 1}, checked_type=ty)
        return Call(GlobalVar(name, checked_type=ty), new.args, span=old.span, checked_type=old.type)


def _can_move(ty: Type) -> bool:
    """Whether values of a type are tensors of known element type and rank, tuples of them, or data."""
    match ty:
        case TensorType():
            return is_closed(ty)
        case TupleType(fields=parts) | TypeCall(args=parts):
            return all(map(_can_move, parts))
        case _:
            return False
