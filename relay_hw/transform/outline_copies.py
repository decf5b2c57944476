"""OutlineCopies: moves each copy between devices into a function of its own, so that a run can count and time it.

In: a module whose fragments are outlined by device. Out: the same with calls of fragments in place of `device_copy`.
"""

from __future__ import annotations

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Expr, Function, GlobalVar, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType, TensorType, TupleType, Type, TypeCall
from relay_hw.ir.visit import Rewriter, copy_with
from relay_hw.transform.base import Pass
from relay_hw.transform.fragments import FRAGMENT, is_closed
from relay_hw.transform.graph import is_external, is_op


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


class _Copies(Rewriter):
    def __init__(self, taken: set[str]) -> None:
        super().__init__()
        self.found: dict[str, Function] = {}
        self._taken = taken

    def _rewrite_node(self, node: Expr) -> Expr:
        new = super()._rewrite_node(node)
        same_type = new.checked_type is not None or node.checked_type is None
        return new if same_type else copy_with(new, checked_type=node.checked_type)

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if not is_op(old, "device_copy"):
            return new
        if not _can_move(old.type):
            raise UnsupportedError(f"device_copy must move tensors, not {old.type}", old.span)
        param = Var("x0", old.type, checked_type=old.type)
        inner = copy_with(new, args=(param,), checked_type=old.type)
        ty = FuncType((old.type,), old.type)
        name = self._name()
        self.found[name] = Function((param,), inner, old.type, attrs={FRAGMENT: 1}, checked_type=ty)
        return Call(GlobalVar(name, checked_type=ty), new.args, span=old.span, checked_type=old.type)

    def _name(self) -> str:
        """A name for the next copy."""
        number = len(self.found)
        while f"copy_{number}" in self._taken:
            number += 1
        self._taken.add(f"copy_{number}")
        return f"copy_{number}"


def _can_move(ty: Type) -> bool:
    """Whether values of a type are tensors of known element type and rank, tuples of them, or data."""
    match ty:
        case TensorType():
            return is_closed(ty)
        case TupleType(fields=parts) | TypeCall(args=parts):
            return all(map(_can_move, parts))
        case _:
            return False
