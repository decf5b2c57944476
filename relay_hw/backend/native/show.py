"""Prints the lowered form: a function as lines, blocks indented.

In: a native function. Out: text, for people and for tests.
"""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import assert_never

from relay_hw.backend.native.nodes import (
    Again,
    Apply,
    Block,
    Box,
    Branch,
    Callback,
    Check,
    Compute,
    Constant,
    Drop,
    Element,
    Expression,
    Field,
    Fill,
    Invoke,
    Keep,
    Local,
    Make,
    Match,
    NativeFunction,
    Number,
    Product,
    Read,
    Reduce,
    Return,
    Scalar,
    Set,
    Statement,
    Store,
    TailApply,
    TailInvoke,
    Unbox,
)


def show_function(function: NativeFunction) -> str:
    """A function as text."""
    head = f"@{function.number} {function.name}({_list(function.params)}) -> {function.result or 'object'} {{"
    return "\n".join([head, *_indented(_block(function.body)), "}"])


def _block(block: Block) -> list[str]:
    return [line for statement in block for line in _statement(statement)]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _list(locals_: Iterable[Local]) -> str:
    return ", ".join(map(str, locals_))


def _statement(statement: Statement) -> list[str]:
    match statement:
        case Branch(to=to, cond=cond, then=then, otherwise=otherwise):
            head = f"{'' if to is None else f'{to} = '}if {cond} {{"
            return [head, *_indented(_block(then)), "} else {", *_indented(_block(otherwise)), "}"]
        case Match(to=to, value=value, arms=arms):
            lines = [f"{'' if to is None else f'{to} = '}match {value} {{"]
            for arm in arms:
                tests = " and ".join(f"{'.'.join(['it', *map(str, one.path)])} is {one.tag}" for one in arm.tests)
                lines += _indented([f"{tests or 'else'} {{", *_indented(_block(arm.block)), "}"])
            return [*lines, "}"]
        case Keep(value=value) | Drop(value=value) | Return(value=value):
            return [f"{type(statement).__name__.lower()} {value}"]
        case Check(value=value, what=what):
            return [f"check {value}, {what}"]
        case Store(ref=ref, value=value):
            return [f"store {ref}, {value}"]
        case Again(args=args):
            return [f"again({_list(args)})"]
        case TailInvoke(function=number, args=args):
            return [f"return @{number}({_list(args)})"]
        case TailApply(callee=callee, args=args):
            return [f"return {callee}({_list(args)})"]
        case _:
            return [f"{statement.to} = {_value(statement)}"]


def _value(
    statement: Set
    | Constant
    | Scalar
    | Box
    | Unbox
    | Fill
    | Reduce
    | Product
    | Callback
    | Make
    | Field
    | Invoke
    | Apply,
) -> str:
    match statement:
        case Set(value=value):
            return str(value)
        case Constant(index=index):
            return f"constant {index}"
        case Scalar(value=value):
            return show_expression(value)
        case Box(value=value) | Unbox(value=value):
            return f"{type(statement).__name__.lower()} {value}"
        case Fill(shape=shape, dtype=dtype, pieces=pieces):
            parts = "; ".join(f"{show_expression(piece.value)} at {piece.offset} {piece.strides}" for piece in pieces)
            return f"{dtype}{list(shape)} of {parts}"
        case Reduce(op=op, dtype=dtype, shape=shape, axes=axes, value=value):
            return f"{dtype}{list(shape)} {op} over {list(axes)} of {show_expression(value)}"
        case Product(dtype=dtype, shape=shape, depth=depth, left=left, right=right):
            return f"{dtype}{list(shape)} sum of {depth} {show_expression(left)} * {show_expression(right)}"
        case Callback(number=number, args=args):
            return f"callback {number}({_list(args)})"
        case Make(kind=kind, tag=tag, fields=fields):
            return f"{kind.value} {tag}({_list(fields)})"
        case Field(value=value, index=index):
            return f"{value}.{index}"
        case Invoke(function=number, args=args):
            return f"@{number}({_list(args)})"
        case Apply(callee=callee, args=args):
            return f"{callee}({_list(args)})"
        case _:
            assert_never(statement)


def show_expression(value: Expression) -> str:
    """An expression as text: elements as `%local[offset + strides]`."""
    match value:
        case Number(value=number):
            return str(number)
        case Read(local=local):
            return str(local)
        case Element(local=local, offset=offset, strides=strides, shift=shift):
            places = [str(offset), *([str(shift)] if shift is not None else []), str(list(strides))]
            return f"{local}[{' + '.join(places)}]"
        case Compute(op=op, args=args):
            return f"{op}({', '.join(map(show_expression, args))})"
        case _:
            assert_never(value)
