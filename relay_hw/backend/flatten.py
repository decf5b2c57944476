"""Converts Relay functions to flat functions.

In: a typed Relay function, anything that Relay has. Out: `FlatFunction`. Everything is computed once, where the
interpreter computes it; inner functions that are called where they stand are written out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from relay_hw.backend.nodes import (
    FlatAny,
    FlatApply,
    FlatArm,
    FlatCall,
    FlatClosure,
    FlatConstant,
    FlatConstruct,
    FlatFields,
    FlatFunction,
    FlatGet,
    FlatGlobal,
    FlatIf,
    FlatInput,
    FlatInvoke,
    FlatMatch,
    FlatNode,
    FlatPattern,
    FlatRefNew,
    FlatRefRead,
    FlatRefWrite,
    FlatTuple,
    renumber,
)
from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Op,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.trampoline import Recursion, run
from relay_hw.ir.types import FuncType, Type
from relay_hw.ir.visit import children, pattern_vars, post_order
from relay_hw.transform.normal_form import normalize


def flatten(function: Function, name: str, inline: Mapping[str, Function] | None = None) -> FlatFunction:
    """The flat form of a typed function. Calls of the global functions in `inline`, typed too, are inlined.

    Raises ValueError without types, UnsupportedError for an operator as a value and a variable that nothing binds.
    """
    return run(_flat(function, name, inline or {}))


def _flat(function: Function, name: str, inline: Mapping[str, Function]) -> Recursion[FlatFunction]:
    block = _Block(name, _Shared(inline, {}))
    for var in function.params:
        block.values[var] = block.add(FlatInput(var.name_hint, _type(var)))
    result = yield block.walk(_named(function).body)
    return block.close(result)


def _named(function: Function) -> Function:
    """`function` with a name for everything but atoms and functions that are called where they stand."""
    written_out = _only_called(function)
    return normalize(function, lambda node: node not in written_out and not isinstance(node, Let), names_results=False)


def _only_called(root: Function) -> set[Expr]:
    """Inner functions to inline: those called once, and fused functions."""
    called: dict[Function, int] = {}
    used: dict[Expr, int] = {}
    for node in post_order(root):
        for part in children(node):
            used[part] = used.get(part, 0) + 1
        if isinstance(node, Call) and isinstance(node.op, Function):
            called[node.op] = called.get(node.op, 0) + 1
    return {
        function
        for function, count in called.items()
        if count == used[function] and (count == 1 or "Primitive" in function.attrs or "Composite" in function.attrs)
    }


def _type(expr: Expr) -> Type:
    if expr.checked_type is not None:
        return expr.checked_type
    if isinstance(expr, Var) and expr.type_annotation is not None:
        return expr.type_annotation
    raise ValueError("a host function must have types: run InferType first")


@dataclass(slots=True)
class _Shared:
    """State shared by all blocks of a function."""

    inline: Mapping[str, Function]
    named: dict[Function, Function]

    def named_form(self, function: Function) -> Function:
        """An inlined function with its nodes named."""
        if function not in self.named:
            self.named[function] = _named(function)
        return self.named[function]


@dataclass(slots=True)
class _Block:
    """One flat function as it grows. Values of the blocks around it are captured when they are used first: they have
    negative numbers here, and become the first parameters in the end."""

    name: str
    shared: _Shared
    parent: _Block | None = None
    nodes: list[FlatNode] = field(default_factory=list[FlatNode])
    values: dict[Expr, int] = field(default_factory=dict[Expr, int])
    captured: dict[int, FlatInput] = field(default_factory=dict[int, FlatInput])

    def add(self, node: FlatNode) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def close(self, result: int, captured: Mapping[int, FlatInput] | None = None) -> FlatFunction:
        """The function, whose first parameters are `captured` (by default what it captures itself)."""
        params = self.captured if captured is None else captured
        position = {outer: number for number, outer in enumerate(params)}
        own = [position[outer] for outer in self.captured]

        def moved(index: int) -> int:
            return index + len(params) if index >= 0 else own[-index - 1]

        return FlatFunction(
            self.name, (*params.values(), *(renumber(node, moved) for node in self.nodes)), moved(result)
        )

    def find(self, var: Var) -> int | None:
        """The number of a variable, captured from outer blocks if necessary."""
        chain: list[_Block] = []
        block: _Block | None = self
        while block is not None and var not in block.values:
            chain.append(block)
            block = block.parent
        if block is None:
            return None
        found = block.values[var]
        for inner in reversed(chain):
            if found in inner.captured:
                found = -1 - list(inner.captured).index(found)
            else:
                inner.captured[found] = FlatInput(var.name_hint, _type(var))
                found = -len(inner.captured)
            inner.values[var] = found
        return found

    # Expressions in normal form

    def walk(self, node: Expr) -> Recursion[int]:
        """The number of the value of the block `node`, a chain of lets."""
        while isinstance(node, Let):
            self.values[node.var] = yield self.value(node.value, node.var)
            node = node.body
        return (yield self.value(node))

    def atom(self, node: Expr) -> int:
        """The number of an operand."""
        found = self.find(node) if isinstance(node, Var) else self.values.get(node)
        if found is not None:
            return found
        match node:
            case Constant():
                new: FlatNode = FlatConstant(node.data)
            case GlobalVar():
                new = FlatGlobal(node.name_hint, _type(node))
            case Constructor():
                new = self._constructor(node)
            case Var():
                raise UnsupportedError(f"%{node.name_hint} must be bound where @{self.name} uses it", node.span)
            case _:
                raise UnsupportedError(f"@{self.name} must not have a {type(node).__name__} as a value", node.span)
        self.values[node] = self.add(new)
        return self.values[node]

    def value(self, node: Expr, var: Var | None = None) -> Recursion[int]:
        """The number of a node that may have parts; `var` is the name that it gets."""
        match node:
            case Tuple():
                return self.add(FlatTuple(self._all(node.fields)))
            case TupleGetItem():
                return self.add(FlatGet(self.atom(node.tuple_value), node.index))
            case Call():
                return (yield self._call(node))
            case If():
                return (yield self._if(node))
            case Match():
                return (yield self._match(node))
            case Function():
                return (yield self._closure(node, var))
            case RefCreate():
                return self.add(FlatRefNew(self.atom(node.value), _type(node)))
            case RefRead():
                return self.add(FlatRefRead(self.atom(node.ref), _type(node)))
            case RefWrite():
                return self.add(FlatRefWrite(self.atom(node.ref), self.atom(node.value)))
            case _:
                return self.atom(node)

    def _all(self, nodes: Sequence[Expr]) -> tuple[int, ...]:
        return tuple(self.atom(node) for node in nodes)

    def _call(self, call: Call) -> Recursion[int]:
        op = call.op
        callee = -1 if isinstance(op, (Op, GlobalVar, Function, Constructor)) else self.atom(op)
        args = self._all(call.args)
        match op:
            case Op():
                return self.add(FlatCall(op, args, call.attrs, _type(call)))
            case GlobalVar(name_hint=name) if name in self.shared.inline:
                return (yield self._written_out(self.shared.inline[name], args))
            case GlobalVar(name_hint=name):
                return self.add(FlatInvoke(name, args, _type(call)))
            case Function():
                return (yield self._written_out(op, args))
            case Constructor():
                return self.add(FlatConstruct(op, args, _type(call)))
            case _:
                return self.add(FlatApply(callee, args, _type(call)))

    def _written_out(self, function: Function, args: Sequence[int]) -> Recursion[int]:
        inner = self.shared.named_form(function)
        self.values.update(zip(inner.params, args, strict=True))
        return (yield self.walk(inner.body))

    def _if(self, node: If) -> Recursion[int]:
        cond = self.atom(node.cond)
        blocks = [_Block(self.name, self.shared, self) for _ in range(2)]
        results: list[int] = []
        for block, part in zip(blocks, (node.true_branch, node.false_branch), strict=True):
            results.append((yield block.walk(part)))
        captured = _united(blocks)
        then, otherwise = (block.close(result, captured) for block, result in zip(blocks, results, strict=True))
        return self.add(FlatIf(cond, tuple(captured), then, otherwise, _type(node)))

    def _match(self, node: Match) -> Recursion[int]:
        data = self.atom(node.data)
        blocks: list[_Block] = []
        results: list[int] = []
        for clause in node.clauses:
            block = _Block(self.name, self.shared, self)
            for var in pattern_vars(clause.lhs):
                block.values[var] = block.add(FlatInput(var.name_hint, _type(var)))
            results.append((yield block.walk(clause.rhs)))
            blocks.append(block)
        captured = _united(blocks)
        bodies = [block.close(result, captured) for block, result in zip(blocks, results, strict=True)]
        arms = [FlatArm(_pattern(clause.lhs), body) for clause, body in zip(node.clauses, bodies, strict=True)]
        return self.add(FlatMatch(data, tuple(captured), tuple(arms), _type(node)))

    def _closure(self, node: Function, var: Var | None) -> Recursion[int]:
        block = _Block(self.name, self.shared, self)
        is_recursive = var is not None and any(part is var for part in post_order(node.body))
        for param in (*((var,) if is_recursive and var is not None else ()), *node.params):
            block.values[param] = block.add(FlatInput(param.name_hint, _type(param)))
        function = block.close((yield block.walk(node.body)))
        return self.add(FlatClosure(function, tuple(block.captured), is_recursive, _type(node)))

    def _constructor(self, node: Constructor) -> FlatNode:
        ty = _type(node)
        assert isinstance(ty, FuncType)
        params = [FlatInput(f"x{k}", arg) for k, arg in enumerate(ty.arg_types)]
        made = FlatConstruct(node, tuple(range(len(params))), ty.ret_type)
        return FlatClosure(FlatFunction(node.name_hint, (*params, made), len(params)), (), False, ty)


def _united(blocks: Sequence[_Block]) -> dict[int, FlatInput]:
    """The captures of all blocks."""
    found: dict[int, FlatInput] = {}
    for block in blocks:
        for outer, param in block.captured.items():
            found.setdefault(outer, param)
    return found


def _pattern(pattern: Pattern) -> FlatPattern:
    match pattern:
        case PatternVar():
            return FlatAny(True)
        case PatternConstructor(constructor=constructor, patterns=inner):
            return FlatFields(constructor.name_hint, tuple(map(_pattern, inner)))
        case PatternTuple(patterns=inner):
            return FlatFields(None, tuple(map(_pattern, inner)))
        case _:
            return FlatAny()
