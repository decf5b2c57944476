"""OutlineFragments: moves straight-line fragments of programs with control flow into separate functions.

In: a typed module. Out: the module in which maximal straight-line fragments of operator calls are global functions with
the attribute `Piece`, called by what is left. A module whose `main` is one graph of operators stays as it is, unless
its operators are on devices (`PlanDevices`): a fragment is on one, which its attribute `virtual_device` names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from relay_hw.analysis.variables import free_vars
from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Op,
    Trait,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.module import IRModule
from relay_hw.ir.trampoline import Recursion, run
from relay_hw.ir.types import FuncType, TensorType, TupleType, Type
from relay_hw.ir.visit import copy_with
from relay_hw.transform.base import Pass
from relay_hw.transform.fragment_bodies import Body, build_body, is_closed, leaves, packed, projected
from relay_hw.transform.graph import dataflow_order, is_external, is_op, typed
from relay_hw.transform.names import numbered_name
from relay_hw.transform.normal_form import ATOMS, normalize
from relay_hw.transform.plan_devices import Places

FRAGMENT: Final = "Piece"
DEVICE: Final = "virtual_device"
# Where a value can be computed: after so many branches, calls and effects of its block, and after so many fragments
# that wait for one another there; True: behind the last of them.
_Level = tuple[int, int, bool]
_START: Final[_Level] = (0, 0, False)


class OutlineFragments(Pass):
    """The pass. A fragment runs as soon as its inputs are known, and only if its result is used.

    Operators with an effect, and those on tensors whose element type or rank is a type parameter, are in no fragment.
    """

    name = "outline-pieces"

    def __init__(self, default_device: str | None = None) -> None:
        """`default_device`: of operators for which nothing else says so, in a planned module; None: there are none."""
        self.default_device = default_device

    def transform(self, mod: IRModule) -> IRModule:
        if self.default_device is None and is_graph(mod):
            return mod
        named = {name: _named(function) for name, function in mod.functions.items()}
        places = None if self.default_device is None else Places(mod.with_functions(named), self.default_device)
        fragments = _Fragments(set(mod.functions), places)
        functions = {name: run(fragments.function(function)) for name, function in named.items()}
        return mod.with_functions({**functions, **fragments.found}) if fragments.found else mod


def _named(function: Function) -> Function:
    """`function` with a name for everything that fragments may consist of."""
    if _is_closed_off(function):
        return function
    return normalize(function, lambda node: not isinstance(node, Let), names_results=False)


def _is_closed_off(function: Function) -> bool:
    return is_external(function) or FRAGMENT in function.attrs


def is_graph(mod: IRModule) -> bool:
    """Whether `main` is one graph of operators that calls no other function of the module.

    A function that is called where it stands is a part of it.
    """
    graphs: list[Expr] = [mod["main"].body]
    while graphs:
        try:
            order = dataflow_order(graphs.pop(), "main")
        except UnsupportedError:
            return False
        calls = [node for node in order if isinstance(node, Call)]
        if any(isinstance(call.op, GlobalVar) for call in calls):
            return False
        graphs += [call.op.body for call in calls if isinstance(call.op, Function)]
    return True


def fragments_of(mod: IRModule) -> tuple[str, ...]:
    """Names of the functions that are graphs of operators: the fragments, or `main` if it is one graph."""
    if is_graph(mod):
        return ("main",)
    return tuple(name for name, function in mod.functions.items() if FRAGMENT in function.attrs)


class _Fragments:
    def __init__(self, taken: set[str], places: Places | None) -> None:
        self.found: dict[str, Function] = {}
        self._taken = taken
        self._places = places

    def function(self, function: Function) -> Recursion[Function]:
        """`function`, in which everything has a name, with its fragments outlined."""
        if _is_closed_off(function):
            return function
        return cast(Function, (yield self._inner(function)))

    def device(self, node: Expr) -> str:
        """The device of an operator; empty where there are none."""
        return "" if self._places is None else self._places.device(node)

    def is_work(self, node: Expr) -> bool:
        """Whether a node can be part of a fragment."""
        return _is_work(node) and (self._places is None or not is_op(node, "device_copy"))

    def _inner(self, node: Expr) -> Recursion[Expr]:
        """`node` with fragments outlined in its blocks."""
        match node:
            case Function() if "Primitive" not in node.attrs:
                return copy_with(node, body=(yield self._block(node.body)), checked_type=None)
            case If():
                then = yield self._block(node.true_branch)
                other = yield self._block(node.false_branch)
                return copy_with(node, true_branch=then, false_branch=other)
            case Match():
                clauses: list[Clause] = []
                for clause in node.clauses:
                    clauses.append(Clause(clause.lhs, (yield self._block(clause.rhs))))
                return copy_with(node, clauses=tuple(clauses))
            case _:
                return node

    def _block(self, root: Expr) -> Recursion[Expr]:
        block = _Block(self)
        node = root
        while isinstance(node, Let):
            value = yield self._inner(node.value)
            block.add(node.var, value)
            node = node.body
        if isinstance(node, ATOMS):
            result: Expr = node
        elif _is_free(node):
            result = Var("x", checked_type=node.type)
            block.add(result, node)
        else:
            result = yield self._inner(node)
        return block.close(result)

    def name(self) -> str:
        """A name for the next fragment."""
        return numbered_name("piece", self._taken, len(self.found))


def _is_free(node: Expr) -> bool:
    """Whether a node may be computed anywhere, or not at all."""
    match node:
        case Call(op=Op() as op):
            return not op.has(Trait.EFFECT)
        case Tuple() | TupleGetItem() | Call(op=Constructor()):
            return True
        case _:
            return isinstance(node, ATOMS)


def _is_work(node: Expr) -> bool:
    if not isinstance(node, Call) or not isinstance(node.op, Op) or node.op.has(Trait.EFFECT):
        return False
    return is_closed(node.type) and all(is_closed(_type(arg)) for arg in node.args)


def _type(expr: Expr) -> Type:
    if isinstance(expr, Constant) and expr.checked_type is None:
        return TensorType(expr.data.shape, str(expr.data.dtype))
    return expr.type


@dataclass(slots=True)
class _Fragment:
    """A fragment: its device, empty for none; its members in order; `outputs`: those with other readers; `body`: once
    it has a place."""

    device: str
    members: list[Var] = field(default_factory=list[Var])
    outputs: dict[Var, None] = field(default_factory=dict[Var, None])
    body: Body | None = None


@dataclass(slots=True)
class _Block:
    """One block: bound values, the level of each, the fragments, and the order in which they are put together again."""

    all: _Fragments
    values: dict[Expr, Expr] = field(default_factory=dict[Expr, Expr])
    levels: dict[Expr, _Level] = field(default_factory=dict[Expr, _Level])
    fragments: dict[tuple[int, int, str], _Fragment] = field(default_factory=dict[tuple[int, int, str], _Fragment])
    fragment_of: dict[Expr, _Fragment] = field(default_factory=dict[Expr, _Fragment])
    anchors: list[Var] = field(default_factory=list[Var])
    order: list[Var | _Fragment] = field(default_factory=list["Var | _Fragment"])
    placed: set[Expr] = field(default_factory=set[Expr])

    def add(self, var: Var, value: Expr) -> None:
        """A binding, behind those that it reads."""
        self.values[var] = value
        if not _is_free(value):
            self.anchors.append(var)
            self.levels[var] = (len(self.anchors), 0, False)
            return
        at, wave, is_behind = max((self.levels.get(part, _START) for part in _operands(value)), default=_START)
        if not self.all.is_work(value):
            # Tuples and projections are made again inside of a fragment that needs them.
            is_lazy = isinstance(value, (Tuple, TupleGetItem, *ATOMS))
            reads = any(self._reads_fragment(part, at, wave) for part in _operands(value))
            self.levels[var] = (at, wave, is_behind or (reads and not is_lazy))
            return
        wave += is_behind
        self.levels[var] = (at, wave, False)
        device = self.all.device(value)
        fragment = self.fragments.setdefault((at, wave, device), _Fragment(device))
        fragment.members.append(var)
        self.fragment_of[var] = fragment

    def _reads_fragment(self, part: Expr, at: int, wave: int) -> bool:
        """Whether `part` is, or is made of, a member of a fragment of that level."""
        stack = [part]
        while stack:
            top = stack.pop()
            if top in self.fragment_of:
                if self.levels[top][:2] == (at, wave):
                    return True
            elif isinstance(self.values.get(top), (Tuple, TupleGetItem, *ATOMS)):
                stack.extend(_operands(self.values[top]))
        return False

    def close(self, result: Expr) -> Expr:
        """The block with its fragments outlined."""
        for anchor in self.anchors:
            # A function reads itself where it is recursive.
            self.placed.add(anchor)
            run(self._place_all(_reads(self.values[anchor])))
            self.order.append(anchor)
        run(self._place_all(_reads(result)))
        body = result
        for entry in reversed(self.order):
            body = self._call(entry, body) if isinstance(entry, _Fragment) else Let(entry, self.values[entry], body)
        return body

    def _place_all(self, parts: Sequence[Expr]) -> Recursion[None]:
        for part in parts:
            yield self._place(part)

    def _place(self, var: Expr) -> Recursion[None]:
        """Put the value of `var`, and before it what it reads, in order."""
        if var in self.fragment_of:
            self.fragment_of[var].outputs[cast(Var, var)] = None
            yield self._place_fragment(self.fragment_of[var])
        elif var in self.values and var not in self.placed:
            self.placed.add(var)
            yield self._place_all(_reads(self.values[var]))
            self.order.append(cast(Var, var))

    def _place_fragment(self, fragment: _Fragment) -> Recursion[None]:
        if fragment.body is not None:
            return
        fragment.body = build_body(fragment.members, self.values)
        for base, _ in fragment.body.params:
            yield self._place(base)
        self.order.append(fragment)

    def _call(self, fragment: _Fragment, body: Expr) -> Expr:
        """`body` behind the call of a fragment."""
        assert fragment.body is not None
        members, inputs = fragment.body.members, fragment.body.params
        params = tuple(inputs.values())
        results = {var: leaves(members[var]) for var in fragment.outputs}
        flat = [leaf for parts in results.values() for leaf in parts]
        whole = flat[0] if len(flat) == 1 else typed(Tuple(flat), TupleType([leaf.type for leaf in flat]))
        ty = FuncType(tuple(param.type for param in params), whole.type)
        name = self.all.name()
        attrs = {FRAGMENT: 1} | ({DEVICE: fragment.device} if fragment.device else {})
        self.all.found[name] = Function(params, whole, whole.type, attrs=attrs, checked_type=ty)
        call = Call(GlobalVar(name), [projected(base, path) for base, path in inputs], checked_type=whole.type)
        if len(flat) == 1:
            (only,) = results
            return Let(only, packed(only.type, [call])[0], body)
        held = Var("p", checked_type=whole.type)
        number = 0
        lets: list[tuple[Var, Expr]] = []
        for var, parts in results.items():
            items = [typed(TupleGetItem(held, number + k), leaf.type) for k, leaf in enumerate(parts)]
            lets.append((var, packed(var.type, items)[0]))
            number += len(parts)
        for var, value in reversed(lets):
            body = Let(var, value, body)
        return Let(held, call, body)


def _operands(node: Expr) -> tuple[Expr, ...]:
    match node:
        case Call(args=args):
            return tuple(args)
        case Tuple(fields=fields):
            return tuple(fields)
        case TupleGetItem(tuple_value=value):
            return (value,)
        case _:
            return (node,)


def _reads(node: Expr) -> Sequence[Expr]:
    """The variables of the block that a value reads, those of its inner blocks included."""
    return tuple(free_vars(node))
