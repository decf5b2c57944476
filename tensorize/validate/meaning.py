"""What a region means: its Relay function on terms, operator by operator, apart from everything that compiles it.

In: the function and terms of its parameters. Out: `Meaning`: terms of its results, and of what each layer computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from relay_hw.tensorize.validate.operators import apply
from relay_hw.tensorize.validate.terms import Terms, constants

Value = Terms | tuple[Terms, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LayerMeaning:
    """A call of a composite: its result, and the values inside of it, by expression, in order of evaluation."""

    composite: Function
    result: Terms
    inside: Mapping[Expr, Value]


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """Results of the region in order, and its layers in an order in which each reads only what came before."""

    results: tuple[Terms, ...]
    layers: tuple[LayerMeaning, ...]


def meaning_of(function: Function, inputs: Sequence[Terms]) -> Meaning:
    """The meaning of a region, given terms of its parameters. Raises TensorizeError for an operator without terms."""
    walk = _Walk()
    memo: dict[Expr, Value] = dict(zip(function.params, inputs, strict=True))
    found = walk.value(function.body, memo)
    return Meaning(found if isinstance(found, tuple) else (found,), tuple(walk.layers))


@dataclass(slots=True)
class _Walk:
    """Evaluates operands before what reads them, without recursion but into composites."""

    layers: list[LayerMeaning] = field(default_factory=list[LayerMeaning])

    def value(self, body: Expr, memo: dict[Expr, Value]) -> Value:
        """The value of `body`; `memo` has those of its parameters, and gets those of all its parts."""
        stack = [body]
        while stack:
            expr = stack[-1]
            missing = [operand for operand in _operands(expr) if operand not in memo]
            if expr not in memo and missing:
                stack.extend(missing)
                continue
            if expr not in memo:
                memo[expr] = self._visit(expr, memo)
            stack.pop()
        return memo[body]

    def _visit(self, expr: Expr, memo: Mapping[Expr, Value]) -> Value:
        match expr:
            case Constant(data=data):
                return constants(data)
            case Tuple(fields=fields):
                return tuple(_one(memo[part]) for part in fields)
            case TupleGetItem(tuple_value=whole, index=index):
                return memo[whole][index]
            case Call(op=Op()):
                return apply(expr, [memo[arg] for arg in expr.args])
            case Call(op=Function() as composite, args=args):
                inside: dict[Expr, Value] = dict(zip(composite.params, (memo[arg] for arg in args), strict=True))
                result = _one(self.value(composite.body, inside))
                self.layers.append(LayerMeaning(composite, result, inside))
                return result
            case Var(name_hint=name):
                raise TensorizeError(f"variable {name} must be a parameter", expr.span)
            case _:
                raise TensorizeError(f"a region must be calls and tuples, not {type(expr).__name__}", expr.span)


def _operands(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Call(args=args):
            yield from args
        case Tuple(fields=fields):
            yield from fields
        case TupleGetItem(tuple_value=whole):
            yield whole
        case _:
            pass


def _one(value: Value) -> Terms:
    assert isinstance(value, Terms)
    return value
