"""BatchFragments: gives fragments of rows further forms that compute many calls of them at once.

In: a typed module with fragments (`OutlineFragments`). Out: the same; a fragment with layers of single rows is divided
where rows begin and end (`row_parts.py`), and each part with such layers has forms for many rows and for fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from relay_hw.analysis.structural import structural_equal
from relay_hw.errors import InputError, RelayHwError
from relay_hw.ir.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType, TensorType, TupleType
from relay_hw.transform.base import Pass
from relay_hw.transform.batch_axes import MixedError
from relay_hw.transform.fragments import FRAGMENT
from relay_hw.transform.graph import dataflow_order, op_name, remake, typed_tuple
from relay_hw.transform.names import unused_name
from relay_hw.transform.one_sample import one_row
from relay_hw.transform.row_parts import RowParts, is_exact, is_row, row_parts

# The attribute of a module that names its forms.
_FORMS: Final = "batched"
# Forms of a fragment, and how many times as many calls each computes as the next one. Each has its own order of the
# weights, and more of them do not stay on the device together.
SIZES: Final = 3
STEP: Final = 2


@dataclass(frozen=True, slots=True)
class BatchedForm:
    """`form` computes what `function` does, for `rows` calls at once: their inputs and outputs are its rows."""

    function: str
    form: str
    rows: int


class BatchFragments(Pass):
    """The pass. Fragments without a layer stay as they are.

    That a form computes each row as the fragment does is proved by taking its rows apart again (`one_sample.py`).
    """

    name = "batch-fragments"

    def __init__(self, rows: int = 2) -> None:
        """`rows`: calls that the largest form computes. Raises InputError if it is less than 2."""
        if rows < 2:
            raise InputError(f"rows must be at least 2, not {rows}")
        self.rows = rows

    def transform(self, mod: IRModule) -> IRModule:
        known = {row.function for row in forms_of(mod)}
        found = dict(mod.functions)
        rows: list[BatchedForm] = []
        for name, function in mod.functions.items():
            if FRAGMENT not in function.attrs or name in known:
                continue
            parts = row_parts(function, name, found)
            forms = list(self._forms(parts)) if parts is not None else []
            if parts is not None and forms:
                found |= parts.functions
            for part, count, form in forms:
                rows.append(BatchedForm(part, unused_name(f"{part}_x{count}", found), count))
                found[rows[-1].form] = form
        if not rows:
            return mod
        return replace(mod.with_functions(found), attrs={**mod.attrs, _FORMS: (*forms_of(mod), *rows)})

    def _forms(self, parts: RowParts) -> Iterator[tuple[str, int, Function]]:
        """The forms of each part that has them, with their rows, the largest first."""
        for name in parts.rows:
            for rows in sizes(self.rows):
                form = batched(parts.functions[name], name, rows)
                if form is not None:
                    yield name, rows, form


def sizes(most: int) -> list[int]:
    """Rows of a fragment's forms: `most`, and parts of it."""
    return [most // STEP**n for n in range(SIZES) if most // STEP**n > 1]


def forms_of(mod: IRModule) -> tuple[BatchedForm, ...]:
    """The batched forms of a module; those of a fragment follow one another, the largest first."""
    forms = mod.attrs.get(_FORMS, ())
    assert isinstance(forms, tuple)
    return tuple(row for row in forms if row.form in mod.functions)


def by_function(forms: Iterable[BatchedForm]) -> dict[str, list[BatchedForm]]:
    """The forms of each fragment, the largest first."""
    found: dict[str, list[BatchedForm]] = {}
    for form in sorted(forms, key=lambda form: -form.rows):
        found.setdefault(form.function, []).append(form)
    return found


def batched(fragment: Function, name: str, rows: int) -> Function | None:
    """The function of `rows` rows; None where there is none that gives the same bits."""
    if not all(is_row(ty) for ty in (*(param.type for param in fragment.params), fragment.body.type)):
        return None
    order = dataflow_order(fragment.body, name)
    if not all(is_exact(node) for node in order if isinstance(node, Call)):
        return None
    try:
        form = _widened(fragment, order, rows)
        is_proved = structural_equal(one_row(form, rows), replace(fragment, ret_type=None))
    except (MixedError, RelayHwError):
        return None
    return form if is_proved else None


def _widened(fragment: Function, order: list[Expr], rows: int) -> Function:
    """The fragment with `rows` rows in each input. Raises TypeCheckError where an operator does not take them."""
    new: dict[Expr, Expr] = {param: _wide_param(param, rows) for param in fragment.params}
    for node in order:
        if node not in new:
            new[node] = _wide(node, new, rows)
    body, params = new[fragment.body], [new[param] for param in fragment.params]
    ty = FuncType(tuple(param.type for param in params), body.type)
    inputs = [param for param in params if isinstance(param, Var)]
    return Function(inputs, body, attrs=fragment.attrs, checked_type=ty, span=fragment.span)


def _wide_param(param: Var, rows: int) -> Var:
    ty = TensorType((rows, *param.tensor_type.shape[1:]), param.tensor_type.dtype)
    return Var(param.name_hint, ty, span=param.span, checked_type=ty)


def _wide(node: Expr, new: Mapping[Expr, Expr], rows: int) -> Expr:
    match node:
        case Tuple(fields=parts):
            return typed_tuple([new[part] for part in parts])
        case TupleGetItem(tuple_value=value, index=index):
            ty = new[value].type
            assert isinstance(ty, TupleType)
            return TupleGetItem(new[value], index, span=node.span, checked_type=ty.fields[index])
        case Call(op=Op(), args=args):
            attrs = (
                replace(node.attrs, newshape=(rows, *node.tensor_type.shape[1:]))
                if op_name(node) == "reshape"
                else None
            )
            return remake(node, [new[arg] for arg in args], attrs)
        case Constant():
            return node
        case _:
            raise MixedError("a fragment must be a graph of operator calls")
