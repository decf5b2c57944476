"""ONNX sequences and optionals: Relay's lists and options. Their tensors share an element type and a rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay_hw import op
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.frontend.onnx.cast import DTYPES
from relay_hw.frontend.onnx.loops import number, variable
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node
from relay_hw.frontend.onnx.typer import UNKNOWN, join
from relay_hw.ir.expr import (
    Call,
    Clause,
    Expr,
    Function,
    GlobalVar,
    If,
    Match,
    PatternConstructor,
    PatternVar,
    Var,
)
from relay_hw.ir.types import ANY, Dim, TensorType, Type, TypeCall
from relay_hw.op import const


def as_type(args: Arguments, value: Expr, ty: Type) -> Expr:
    """`value` with its type widened to `ty`."""
    if args.any_type(value) == ty or _is_open(ty):
        return value
    var = variable(args, "x", ty)
    name = args.scope.fresh("wider")
    return Call(args.scope.define(name, Function([var], var, ty, span=args.node.span)), [value])


def _is_open(ty: Type) -> bool:
    return isinstance(ty, TypeCall) and ty.args == (UNKNOWN,)


def list_of(args: Arguments, element: Type) -> TypeCall:
    """The type of lists of `element`."""
    return TypeCall(args.scope.library().get_type("List"), (element,))


def _element(args: Arguments, value: Expr) -> Type:
    found = args.any_type(value)
    if not isinstance(found, TypeCall) or found.func.name != "List":  # type: ignore[attr-defined]
        raise InputError(f"{args.node.operator} must read a sequence, not {found}", args.node.span)
    return found.args[0]


def _tensor_element(args: Arguments, value: Expr) -> TensorType:
    found = _element(args, value)
    if not isinstance(found, TensorType):
        raise UnsupportedError(f"the rank of the sequence's tensors must be known, not {found}")
    return found


def _constructor(args: Arguments, name: str, fields: Sequence[Expr], element: Type) -> Expr:
    data = "List" if name in ("Cons", "Nil") else "Option"
    given = () if element is UNKNOWN else (element,)
    return Call(args.scope.library().get_ctor(data, name), list(fields), type_args=given)


def make_list(args: Arguments, values: Sequence[Expr]) -> Expr:
    """A list of these tensors."""
    if not values:
        return _constructor(args, "Nil", (), UNKNOWN)
    element = args.any_type(values[0])
    for value in values[1:]:
        element = join(element, args.any_type(value))
    made = _constructor(args, "Nil", (), element)
    for value in reversed(values):
        made = _constructor(args, "Cons", (as_type(args, value, element), made), element)
    return made


def _call(args: Arguments, name: str, values: Sequence[Expr], element: Type) -> Expr:
    """Call a prelude function on lists of `element`."""
    args.scope.library("sequence")
    return Call(GlobalVar(name), list(values), type_args=() if element is UNKNOWN else (element,))


def _construct(node: Node, args: Arguments) -> Expr:
    return make_list(args, args.all())


def _empty(node: Node, args: Arguments) -> Expr:
    return make_list(args, [])


def _length(node: Node, args: Arguments) -> Expr:
    return _call(args, "sequence_length", [args[0]], _element(args, args[0]))


def _place(args: Arguments, xs: Expr, index: int, element: Type) -> Expr:
    """A non-negative index."""
    given = args.array(index)
    if given is not None and int(given.reshape(())) >= 0:
        return number(int(given.reshape(())))
    place = args[index]
    place = op.reshape(place, ()) if args.rank(place) else place
    place = place if args.dtype(place) == "int64" else op.cast(place, "int64")
    return _call(args, "sequence_place", [xs, place], element)


def _at(node: Node, args: Arguments) -> Expr:
    element = _element(args, args[0])
    return _call(args, "sequence_at", [args[0], _place(args, args[0], 1, element)], element)


def _insert(node: Node, args: Arguments) -> Expr:
    old, value = _element(args, args[0]), args[1]
    element = join(old, args.any_type(value))
    xs, value = as_type(args, args[0], list_of(args, element)), as_type(args, value, element)
    place = _place(args, xs, 2, element) if node.has_input(2) else _call(args, "sequence_length", [xs], element)
    return _call(args, "sequence_insert", [xs, place, value], element)


def _erase(node: Node, args: Arguments) -> Expr:
    element = _element(args, args[0])
    if node.has_input(1):
        place = _place(args, args[0], 1, element)
    else:
        place = op.subtract(_call(args, "sequence_length", [args[0]], element), number(1))
    return _call(args, "sequence_erase", [args[0], place], element)


def _concat(node: Node, args: Arguments) -> Expr:
    element, is_new = _tensor_element(args, args[0]), bool(node.attr("new_axis", 0))
    return joined(args, args[0], element, node.attr("axis") % (element.rank + is_new), is_new)


@dataclass(frozen=True, slots=True)
class ListedRows:
    """Like `loops.Rows`, for rows of dynamic shape: a list, the last row first."""

    args: Arguments
    row: TensorType

    @property
    def type(self) -> Type:
        return list_of(self.args, self.row)

    def start(self) -> Expr:
        """The empty list."""
        return _constructor(self.args, "Nil", (), self.row)

    def push(self, rows: Expr, value: Expr) -> Expr:
        """`rows` with one row added."""
        return _constructor(self.args, "Cons", (value, rows), self.row)

    def finish(self, rows: Expr) -> Expr:
        """The rows as one tensor; without rows its dynamic sizes are 0."""
        sizes = (0, *(dim if isinstance(dim, int) else 0 for dim in self.row.shape))
        return joined(self.args, rows, self.row, 0, True, const(np.zeros(sizes, self.row.dtype)))


def joined(
    args: Arguments, values: Expr, element: TensorType, axis: int, is_new: bool, empty: Expr | None = None
) -> Expr:
    """Concatenate the tensors of a list by a loop over it.

    With `empty`, the value of an empty list, the list counts from its end.
    """
    dims: list[Dim] = list(element.shape)
    if is_new:
        dims.insert(axis, ANY)
    else:
        dims[axis] = ANY
    whole = TensorType(dims, element.dtype)

    def part(value: Expr) -> Expr:
        return op.expand_dims(value, axis) if is_new else value

    library = args.scope.library()
    cons, nil = library.get_ctor("List", "Cons"), library.get_ctor("List", "Nil")
    xs_type = list_of(args, element)
    done, xs = variable(args, "done", whole), variable(args, "xs", xs_type)
    x, rest = variable(args, "x", element), variable(args, "rest", xs_type)
    name = args.scope.fresh("concat_from")
    pair = [done, part(x)] if empty is None else [part(x), done]
    again = Call(GlobalVar(name), [op.concatenate(pair, axis), rest])
    clauses = [
        Clause(PatternConstructor(nil), done),
        Clause(PatternConstructor(cons, [PatternVar(x), PatternVar(rest)]), again),
    ]
    loop = args.scope.define(name, Function([done, xs], Match(xs, clauses), whole, span=args.node.span))
    first, others = variable(args, "x", element), variable(args, "rest", xs_type)
    pattern = PatternConstructor(cons, [PatternVar(first), PatternVar(others)])
    start = as_type(args, part(first), whole)
    found = [Clause(pattern, Call(loop, [start, others]))]
    if empty is not None:
        found.append(Clause(PatternConstructor(nil), as_type(args, empty, whole)))
    return Match(values, found, complete=empty is not None)


def _split(node: Node, args: Arguments) -> Expr:
    """SplitToSequence: parts of known size make a list at once; dynamic sizes make a function that splits in a loop."""
    data = args[0]
    axis = node.attr("axis", 0) % args.rank(data)
    size = args.shape(data)[axis]
    given = args.array(1)
    if node.has_input(1) and given is None:
        return _split_by_value(node, args, axis, size)
    chunks = _chunks(args, given, size)
    drops = given is None and not node.attr("keepdims", 1)
    parts: list[Expr] = []
    begin = 0
    for chunk in chunks:
        piece = op.strided_slice(data, (begin,), (begin + chunk,), (1,), axes=(axis,))
        parts.append(op.squeeze(piece, (axis,)) if drops else piece)
        begin += chunk
    return make_list(args, parts)


def _chunks(args: Arguments, given: np.ndarray | None, size: int) -> list[int]:
    if given is not None and given.ndim:
        return [int(chunk) for chunk in given]
    chunk = 1 if given is None else int(given)
    args.scope.ledger.parts(size // max(chunk, 1), args.node.span)
    return [min(chunk, size - begin) for begin in range(0, size, chunk)]


def _split_by_value(node: Node, args: Arguments, axis: int, size: int) -> Expr:
    """Split by part sizes, or one common size, from an input."""
    data, sizes = args[0], op.cast(args[1], "int64")
    dims: list[Dim] = list(args.dims(data))
    dims[axis] = ANY
    element = TensorType(dims, args.dtype(data))

    def piece(whole: Expr, begin: Expr, end: Expr) -> Expr:
        return op.take(whole, op.arange(begin, end, number(1), "int64"), axis)

    if args.rank(sizes):
        args.scope.ledger.parts(args.shape(sizes)[0], node.span)
        ends = op.cumsum(sizes, 0)
        cuts = [(op.take(ends, number(k), 0), op.take(sizes, number(k), 0)) for k in range(args.shape(sizes)[0])]
        return make_list(args, [piece(data, op.subtract(end, length), end) for end, length in cuts])
    whole, begin = variable(args, "data", args.any_type(data)), variable(args, "begin", TensorType((), "int64"))
    length = variable(args, "size", TensorType((), "int64"))
    name, ty = args.scope.fresh("split"), list_of(args, element)
    end = op.add(begin, length)
    again = Call(GlobalVar(name), [whole, end, length])
    cut = as_type(args, piece(whole, begin, op.minimum(end, number(size))), element)
    args.scope.define(
        name,
        Function(
            [whole, begin, length],
            If(
                op.less(begin, number(size)),
                _constructor(args, "Cons", (cut, again), element),
                _constructor(args, "Nil", (), element),
                span=node.span,
            ),
            ty,
            span=node.span,
        ),
    )
    return Call(GlobalVar(name), [data, number(0), sizes])


def _optional(node: Node, args: Arguments) -> Expr:
    if not node.has_input(0):
        kind = node.attr("type")
        return _constructor(args, "None", (), UNKNOWN if kind is None else _of_proto(args, kind))
    return _constructor(args, "Some", (args[0],), args.any_type(args[0]))


def _of_proto(args: Arguments, kind: Any) -> Type:
    """The type that an attribute gives."""
    if kind.HasField("sequence_type"):
        return list_of(args, _of_proto(args, kind.sequence_type.elem_type))
    tensor = kind.tensor_type
    if not kind.HasField("tensor_type") or tensor.elem_type not in DTYPES:
        raise UnsupportedError("its type must be one of tensors or sequences of them")
    dims: list[Dim] = [dim.dim_value if dim.HasField("dim_value") else ANY for dim in tensor.shape.dim]
    return TensorType(dims, DTYPES[tensor.elem_type])


def _content(args: Arguments) -> Type | None:
    """The content type of an optional input; None if the input is not an optional."""
    found = args.any_type(args[0])
    is_option = isinstance(found, TypeCall) and found.func.name == "Option"  # type: ignore[attr-defined]
    return found.args[0] if is_option else None  # type: ignore[attr-defined]


def _has_element(node: Node, args: Arguments) -> Expr:
    if not node.has_input(0):
        return const(np.array(False))
    content = _content(args)
    if content is None:
        return const(np.array(True))
    library = args.scope.library()
    some, none = library.get_ctor("Option", "Some"), library.get_ctor("Option", "None")
    yes, no = const(np.array(True)), const(np.array(False))
    var = variable(args, "x", content) if content is not UNKNOWN else Var("x", span=node.span)
    clauses = [Clause(PatternConstructor(some, [PatternVar(var)]), yes), Clause(PatternConstructor(none), no)]
    return Match(args[0], clauses)


def _get_element(node: Node, args: Arguments) -> Expr:
    content = _content(args)
    if content is None:
        return args[0]
    if content is UNKNOWN:
        raise UnsupportedError("the optional must have a known type")
    var = variable(args, "x", content)
    pattern = PatternConstructor(args.scope.library().get_ctor("Option", "Some"), [PatternVar(var)])
    return Match(args[0], [Clause(pattern, var)], complete=False)


def _check_element(node: Node, known: Known) -> str | None:
    return None if node.has_input(0) else "its optional must be given"


CONVERTERS = (
    Converter("SequenceConstruct", _construct),
    Converter("SequenceEmpty", _empty),
    Converter("SequenceLength", _length),
    Converter("SequenceAt", _at),
    Converter("SequenceInsert", _insert),
    Converter("SequenceErase", _erase),
    Converter("ConcatFromSequence", _concat),
    Converter("SplitToSequence", _split),
    Converter("Optional", _optional),
    Converter("OptionalHasElement", _has_element),
    Converter("OptionalGetElement", _get_element, _check_element),
)
