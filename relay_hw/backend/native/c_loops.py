"""The C text of loops over tensors: elementwise expressions, sums along axes, matrix products.

In: `Fill`, `Reduce`, `Product`. Out: lines of C. Loops are merged where all tensors lie without gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

import numpy as np

from relay_hw.backend.native import scalars
from relay_hw.backend.native.nodes import (
    C_TYPES,
    Compute,
    Element,
    Expression,
    Fill,
    Number,
    Product,
    Read,
    Reduce,
)
from relay_hw.backend.native.values import row_major, tag_of

Strides = tuple[int, ...]


class Expressions:
    """C statements that compute expressions; elements are read through pointers that are set up before the loops."""

    def __init__(self, prefix: str) -> None:
        self.pointers: list[str] = []
        self.lines: list[str] = []
        self._prefix = prefix
        self._count = 0
        self._known: dict[object, str] = {}

    def element(self, value: Element) -> tuple[str, Strides]:
        """The pointer to an element at index 0, and strides."""
        key = (value.local, value.offset, value.shift)
        if key not in self._known:
            name = self._known[key] = f"{self._prefix}{len(self._known)}"
            shift = f" + v{value.shift.number}" if value.shift is not None else ""
            kind, offset = C_TYPES[value.dtype], f" + {value.offset}" if value.offset else ""
            read = f"rhw_read(r, v{value.local.number}, {tag_of(value.dtype)}, {value.count})"
            self.pointers.append(f"const {kind} *{name} = (const {kind} *){read}{offset}{shift};")
        return self._known[key], value.strides

    def text(self, value: Expression, index: Sequence[str]) -> str:
        """The name of a number in C, whose statements are added to `lines`."""
        done: dict[int, str] = {}
        waiting: list[tuple[Expression, bool]] = [(value, False)]
        while waiting:
            one, is_ready = waiting.pop()
            if isinstance(one, Compute) and not is_ready:
                waiting += [(one, True), *((arg, False) for arg in reversed(one.args))]
                continue
            done[id(one)] = self._one(one, index, done)
        return done[id(value)]

    def _one(self, value: Expression, index: Sequence[str], done: dict[int, str]) -> str:
        match value:
            case Number(value=number, dtype=dtype):
                return scalars.number(number, dtype)
            case Read(local=local):
                return f"v{local.number}"
            case Element():
                pointer, strides = self.element(value)
                return f"{pointer}[{place(strides, index)}]"
            case Compute(op="take", attrs=(size, stride, mode), args=args):
                at = f"rhw_place({done[id(args[0])]}, {size}, {int(mode == 'wrap')})"
                return self._named(f"{at} * {stride}", "int64")
            case Compute(op=op, attrs=attrs, dtype=dtype, args=args):
                texts = [done[id(arg)] for arg in args]
                found = scalars.compute(op, attrs, dtype, [arg.dtype for arg in args], texts)
                assert found is not None, "the lowering asked before"
                return self._named(found, dtype)

    def _named(self, text: str, dtype: str) -> str:
        self._count += 1
        name = f"t{self._count}"
        self.lines.append(f"const {C_TYPES[dtype]} {name} = {text};")
        return name


def place(strides: Sequence[int], index: Sequence[str]) -> str:
    """An index into memory."""
    parts = [
        name if stride == 1 else f"{name} * {stride}" for name, stride in zip(index, strides, strict=True) if stride
    ]
    return " + ".join(parts) or "0"


def elements_of(value: Expression) -> Iterator[Element]:
    """The elements that an expression reads."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Element):
            yield one
        elif isinstance(one, Compute):
            waiting += one.args


def merged(shape: Sequence[int], strides: Iterable[Strides]) -> tuple[tuple[int, ...], list[Strides]]:
    """Fewer axes for the same places: those of size 1 left out, neighbours without gaps made one."""
    rows = [list(one) for one in strides]
    sizes: list[int] = []
    kept: list[list[int]] = [[] for _ in rows]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if sizes and all(keep[-1] == row[axis] * size for keep, row in zip(kept, rows, strict=True)):
            sizes[-1] *= size
            for keep, row in zip(kept, rows, strict=True):
                keep[-1] = row[axis]
            continue
        sizes.append(size)
        for keep, row in zip(kept, rows, strict=True):
            keep.append(row[axis])
    return tuple(sizes), [tuple(keep) for keep in kept]


def restrided(value: Expression, strides: Iterator[Strides]) -> Expression:
    """The expression with the strides of its elements replaced, in the order of `elements_of`."""
    new = {id(one): found for one, found in zip(elements_of(value), strides, strict=True)}
    done: dict[int, Expression] = {}
    waiting: list[tuple[Expression, bool]] = [(value, False)]
    while waiting:
        one, is_ready = waiting.pop()
        if isinstance(one, Compute) and not is_ready:
            waiting += [(one, True), *((arg, False) for arg in one.args)]
        elif isinstance(one, Compute):
            done[id(one)] = Compute(one.op, one.attrs, one.dtype, tuple(done[id(arg)] for arg in one.args))
        elif isinstance(one, Element):
            done[id(one)] = Element(one.local, one.dtype, one.count, one.offset, new[id(one)], one.shift)
        else:
            done[id(one)] = one
    return done[id(value)]


def nest(sizes: Sequence[int], names: Sequence[str], body: Sequence[str]) -> list[str]:
    """Loops around lines."""
    lines = list(body)
    for size, name in reversed(list(zip(sizes, names, strict=True))):
        lines = [f"for (ptrdiff_t {name} = 0; {name} < {size}; {name}++) {{", *(f"    {line}" for line in lines), "}"]
    return lines


def new_tensor(number: int, shape: Sequence[int], dtype: str) -> list[str]:
    """A tensor without elements yet."""
    lines = [f"v{number} = rhw_new_tensor(r, {tag_of(dtype)}, {len(shape)}, {prod(shape)});"]
    return lines + [f"rhw_sizes(v{number})[{axis + 1}] = {size};" for axis, size in enumerate(shape)]


def fill(statement: Fill) -> list[str]:
    """C for a `Fill`."""
    number, kind = statement.to.number, C_TYPES[statement.dtype]
    lines = new_tensor(number, statement.shape, statement.dtype)
    for piece in statement.pieces:
        if prod(piece.shape) == 0:
            continue
        found = list(elements_of(piece.value))
        sizes, strides = merged(piece.shape, [piece.strides, *(one.strides for one in found)])
        names = [f"i{axis}" for axis in range(len(sizes))]
        made = Expressions("a")
        value = made.text(restrided(piece.value, iter(strides[1:])), names)
        target = f"(({kind} *)rhw_data(v{number}))" + (f" + {piece.offset}" if piece.offset else "")
        body = [*made.lines, f"o[{place(strides[0], names)}] = {value};"]
        lines += ["{", f"    {kind} *restrict o = {target};", *(f"    {line}" for line in made.pointers)]
        lines += [*(f"    {line}" for line in nest(sizes, names, body)), "}"]
    return lines


_START = {"sum": "0", "mean": "0", "prod": "1", "all": "1", "any": "0"}


def reduce(statement: Reduce) -> list[str]:
    """C for a `Reduce`."""
    number, op, dtype, axes = statement.to.number, statement.op, statement.dtype, statement.axes
    kind, source = C_TYPES[dtype], statement.source
    kept = [axis for axis in range(len(source)) if axis not in axes]
    names = [f"i{axis}" for axis in range(len(source))]
    made = Expressions("a")
    value = made.text(statement.value, names)
    is_real = dtype.startswith("float")
    wide = "double" if is_real and op in ("sum", "mean") else kind
    count = prod(source[axis] for axis in axes)
    inner = nest([source[axis] for axis in axes], [names[axis] for axis in axes],
                 [*made.lines, _step(op, dtype, wide, value)])  # fmt: skip
    result = f"({kind})(s / {count})" if op == "mean" else f"({kind})s"
    strides = row_major(tuple(source[axis] for axis in kept))
    at = place(strides, [names[axis] for axis in kept])
    body = [f"{wide} s = {_START.get(op) or _limit(op, dtype)};", *inner, f"o[{at}] = {result};"]
    lines = new_tensor(number, statement.shape, dtype)
    lines += ["{", f"    {kind} *restrict o = rhw_data(v{number});", *(f"    {line}" for line in made.pointers)]
    loops = nest([source[axis] for axis in kept], [names[axis] for axis in kept], body)
    return [*lines, *(f"    {line}" for line in loops), "}"]


def _step(op: str, dtype: str, wide: str, value: str) -> str:
    match op:
        case "sum" | "mean":
            return f"s = ({wide})(s + {value});"
        case "prod":
            return f"s = ({wide})(s * {value});"
        case "all" | "any":
            return f"s = s {'&&' if op == 'all' else '||'} {value};"
        case _:
            return f"s = {scalars.compute(f'{op}imum', None, dtype, [dtype] * 2, ['s', value])};"


def _limit(op: str, dtype: str) -> str:
    """What every number is at least as large as, or as small as."""
    if dtype.startswith("float"):
        return scalars.number(float("-inf" if op == "max" else "inf"), dtype)
    info = np.iinfo(dtype)
    return scalars.number(int(info.min if op == "max" else info.max), dtype)


def product(statement: Product) -> list[str]:
    """C for a `Product`."""
    number, dtype, depth = statement.to.number, statement.dtype, statement.depth
    kind, shape = C_TYPES[dtype], statement.shape
    lines = new_tensor(number, shape, dtype)
    if prod(shape) == 0:
        return lines
    made = Expressions("a")
    (a, left), (b, right) = made.element(statement.left), made.element(statement.right)
    names = [f"i{axis}" for axis in range(len(shape))]
    rows = row_major(shape)
    at = [place(strides[: len(shape) - 1], names[:-1]) for strides in (left, right, rows)]
    columns, ends = shape[-1], f"{shape[-1]}, {depth}"
    is_plain = dtype.startswith("float")
    if is_plain and (left[-1] == right[-1] == 1 or depth == 1):
        call = f"rhw_dots_{dtype}({a} + {at[0]}, {b} + {at[1]}, {right[-2]}, o + {at[2]}, {ends});"
    elif is_plain and (right[-2] == 1 or columns == 1):
        call = f"rhw_rows_{dtype}({a} + {at[0]}, {left[-1]}, {b} + {at[1]}, {right[-1]}, o + {at[2]}, {ends});"
    else:
        call = ""
    body = [call] if call else _sums(kind, (a, b), (left, right), names, (columns, depth), at[2])
    lines += ["{", f"    {kind} *restrict o = rhw_data(v{number});", *(f"    {line}" for line in made.pointers)]
    return [*lines, *(f"    {line}" for line in nest(shape[:-1], names[:-1], body)), "}"]


def _sums(
    kind: str, pointers: tuple[str, str], strides: tuple[Strides, Strides], names: list[str], sizes: tuple[int, int],
    out: str,
) -> list[str]:  # fmt: skip
    """A sum of products for each column."""
    index = [*names, "k"]
    a, b = (f"({kind}){name}[{place(one, index)}]" for name, one in zip(pointers, strides, strict=True))
    inner = nest([sizes[1]], ["k"], [f"s = ({kind})(s + {a} * {b});"])
    return nest([sizes[0]], names[-1:], [f"{kind} s = 0;", *inner, f"o[{out} + {names[-1]}] = s;"])
