"""Lowers flat functions to native functions.

In: flat functions by name. Out: a `Program`, without `Keep` and `Drop`. Branches and arms become blocks of the function
that they stand in; the body of a closure becomes a function whose first parameters are what the closure captures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from relay_hw.backend.native.constructors import KnownConstructor, known_constructors
from relay_hw.backend.native.nodes import (
    Again,
    Apply,
    Arm,
    Branch,
    Callback,
    Invoke,
    Kind,
    Local,
    Match,
    NativeFunction,
    Return,
    Set,
    Store,
    TailApply,
    TailInvoke,
    Test,
)
from relay_hw.backend.native.operators import operate
from relay_hw.backend.native.values import Fields, Known, Value, dtype_of, result_type, type_of
from relay_hw.backend.native.writer import Tables, Writer
from relay_hw.backend.nodes import (
    FlatAny,
    FlatApply,
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
    uses,
)
from relay_hw.ir.module import TypeData
from relay_hw.ir.trampoline import Recursion, run
from relay_hw.ir.types import TupleType, Type


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Functions by number; `entries`: the numbers of the named ones. `callbacks`: calls that the caller answers, of
    operators or of functions elsewhere; `constructors`: those that it knows, whose places are their tags."""

    functions: tuple[NativeFunction, ...]
    entries: Mapping[str, int]
    constants: tuple[np.ndarray, ...]
    callbacks: tuple[FlatCall | FlatInvoke, ...]
    constructors: tuple[KnownConstructor, ...]


def lower(
    functions: Mapping[str, FlatFunction],
    types: Mapping[str, TypeData],
    labels: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Program:
    """The program of some flat functions of a module with these data types. Calls of other names are callbacks.

    `labels`: by function, what messages call its quantizations; these refuse NaN and infinity.
    """
    known = known_constructors(functions.values(), types)
    return _Lowering(functions, known, {one.name: tag for tag, one in enumerate(known)}, labels).program()


@dataclass(frozen=True, slots=True, eq=False)
class _Planned:
    """A function that will be lowered. `captured`: how many values it captures; `is_recursive`: whether it is a closure
    that has itself as the parameter behind these; `result`: the form of what it returns."""

    number: int
    flat: FlatFunction
    captured: int
    is_recursive: bool
    result: str | None

    @property
    def params(self) -> list[FlatInput]:
        """The parameters of the native function: all but that for itself."""
        params = list(self.flat.params)
        if self.is_recursive:
            del params[self.captured]
        return params


@dataclass(slots=True)
class _Lowering:
    flat: Mapping[str, FlatFunction]
    constructors: Sequence[KnownConstructor]
    tags: Mapping[str, int]
    labels: Mapping[str, Sequence[str]]
    tables: Tables = field(default_factory=Tables)
    planned: dict[FlatFunction, _Planned] = field(default_factory=dict[FlatFunction, _Planned])
    by_number: list[_Planned] = field(default_factory=list[_Planned])
    callbacks: list[FlatCall | FlatInvoke] = field(default_factory=list[FlatCall | FlatInvoke])

    def program(self) -> Program:
        """All functions lowered, with those that they contain."""
        for flat in self.flat.values():
            self.plan(flat)
        done: list[NativeFunction] = []
        while len(done) < len(self.by_number):
            done.append(_FunctionLowering(self, self.by_number[len(done)]).lower())
        entries = {name: self.planned[flat].number for name, flat in self.flat.items()}
        constants, callbacks = tuple(self.tables.constants), tuple(self.callbacks)
        return Program(tuple(done), entries, constants, callbacks, tuple(self.constructors))

    def plan(self, flat: FlatFunction, captured: int = 0, is_recursive: bool = False) -> _Planned:
        """The number of a function, new or old."""
        if flat not in self.planned:
            new = _Planned(len(self.planned), flat, captured, is_recursive, dtype_of(result_type(flat)))
            self.planned[flat] = new
            self.by_number.append(new)
        return self.planned[flat]

    def callback(self, call: FlatCall | FlatInvoke) -> int:
        """The number of a call that the caller of the program answers."""
        self.callbacks.append(call)
        return len(self.callbacks) - 1


@dataclass(slots=True)
class _Scope:
    """A flat function being lowered: values and types of its nodes so far, and how often each is used."""

    flat: FlatFunction
    values: list[Value]
    types: list[Type]
    uses: Counter[int]
    by_calls: Counter[int]


class _FunctionLowering:
    """Lowers one function, branches and arms included."""

    def __init__(self, whole: _Lowering, planned: _Planned) -> None:
        self.whole = whole
        self.planned = planned
        self.writer = Writer(whole.tables, whole.labels.get(planned.flat.name, ()))

    def lower(self) -> NativeFunction:
        """The function."""
        planned, writer = self.planned, self.writer
        params = tuple(writer.fresh(dtype_of(param.type)) for param in planned.params)
        given: list[Value] = list(params)
        if planned.is_recursive:
            given.insert(planned.captured, Known(planned.number, tuple(params[: planned.captured])))
        run(self._tail(planned.flat, given))
        return NativeFunction(planned.number, planned.flat.name, params, planned.result, writer.close())

    # Blocks

    def _scope(self, flat: FlatFunction, given: Sequence[Value]) -> _Scope:
        counts: Counter[int] = Counter([flat.result])
        calls: Counter[int] = Counter()
        for node in flat.nodes:
            counts.update(uses(node))
            if isinstance(node, FlatCall):
                calls.update(node.args)
        return _Scope(flat, list(given), [param.type for param in flat.params], counts, calls)

    def _tail(self, flat: FlatFunction, given: Sequence[Value]) -> Recursion[None]:
        """The statements of a function or of a branch at its end: they end in its result."""
        scope = self._scope(flat, given)
        last = len(flat.nodes) - 1
        yield self._nodes(scope, last if flat.result == last else last + 1)
        if flat.result == last and last >= len(scope.values):
            node = flat.nodes[last]
            if (yield self._tail_node(scope, node)):
                return
            yield self._node(scope, node)
        result = self.writer.form(scope.values[flat.result], self.planned.result)
        self.writer.emit(Return(result))

    def _tail_node(self, scope: _Scope, node: FlatNode) -> Recursion[bool]:
        """Statements of a node in tail position; False for one that calls nothing."""
        writer = self.writer
        match node:
            case FlatIf(cond=cond, captured=captured, then=then, otherwise=otherwise):
                test, given = writer.number(scope.values[cond], "bool"), self._held(scope, captured)
                blocks: list[tuple[object, ...]] = []
                for part in (then, otherwise):
                    writer.open()
                    yield self._tail(part, given)
                    blocks.append(writer.close())
                writer.emit(Branch(None, test, blocks[0], blocks[1]))  # type: ignore[arg-type]
            case FlatMatch(data=data, captured=captured):
                value, given = writer.object(scope.values[data]), self._held(scope, captured)
                arms: list[Arm] = []
                for arm in node.arms:
                    writer.open()
                    tests, bound = self._bound(arm.pattern, value, arm.body.params[len(captured) :])
                    yield self._tail(arm.body, [*given, *bound])
                    arms.append(Arm(tests, writer.close()))
                writer.emit(Match(None, value, tuple(arms)))
            case FlatInvoke(function=name, args=args) if name in self.whole.flat:
                self._tail_call(self.whole.plan(self.whole.flat[name]), [scope.values[i] for i in args])
            case FlatApply(callee=callee, args=args):
                given = [scope.values[i] for i in args]
                known = scope.values[callee]
                if isinstance(known, Known):
                    self._tail_call(self.whole.by_number[known.function], [*known.held, *given])
                else:
                    writer.emit(TailApply(writer.object(known), tuple(map(writer.object, given))))
            case _:
                return False
        return True

    def _tail_call(self, callee: _Planned, args: Sequence[Value]) -> None:
        given = self._arguments(callee, args)
        if callee is self.planned:
            self.writer.emit(Again(given))
        else:
            self.writer.emit(TailInvoke(callee.number, given))

    def _inner(self, flat: FlatFunction, given: Sequence[Value], to: Local) -> Recursion[None]:
        """The statements of a branch that sets `to`."""
        scope = self._scope(flat, given)
        yield self._nodes(scope, len(flat.nodes))
        self.writer.emit(Set(to, self.writer.form(scope.values[flat.result], to.dtype)))

    def _nodes(self, scope: _Scope, end: int) -> Recursion[None]:
        for node in scope.flat.nodes[len(scope.values) : end]:
            yield self._node(scope, node)

    def _held(self, scope: _Scope, captured: Sequence[int]) -> list[Value]:
        """What a branch captures: computed before it."""
        for index in captured:
            scope.values[index] = self.writer.held(scope.values[index], scope.types[index])
        return [scope.values[index] for index in captured]

    # Nodes

    def _node(self, scope: _Scope, node: FlatNode) -> Recursion[None]:
        """Add the value of a node."""
        ty = type_of(scope.types, node)
        value = yield self._value(scope, node, ty)
        index = len(scope.values)
        is_once = scope.uses[index] == 1 and scope.by_calls[index] == 1
        scope.values.append(value if is_once else self.writer.held(value, ty))
        scope.types.append(ty)

    def _value(self, scope: _Scope, node: FlatNode, ty: Type) -> Recursion[Value]:
        writer, values = self.writer, scope.values
        match node:
            case FlatConstant(data=data):
                return writer.constant(data)
            case FlatCall(args=args):
                given, kinds = [values[i] for i in args], [scope.types[i] for i in args]
                return operate(writer, node, given, kinds) or self._callback(node, given, ty)
            case FlatTuple(fields=fields):
                return Fields(tuple(values[i] for i in fields))
            case FlatGet(source=source, index=index):
                return writer.field(values[source], index, ty)
            case FlatInvoke(function=name, args=args):
                given = [values[i] for i in args]
                if name not in self.whole.flat:
                    return self._callback(node, given, ty)
                return self._call(self.whole.plan(self.whole.flat[name]), given, ty)
            case FlatApply(callee=callee, args=args):
                return self._applied(values[callee], [values[i] for i in args], ty)
            case FlatGlobal(function=name):
                return self._global(name)
            case FlatClosure(function=function, captured=captured, is_recursive=is_recursive):
                held = tuple(self._held(scope, captured))
                return Known(self.whole.plan(function, len(captured), is_recursive).number, held)
            case FlatConstruct(constructor=made, fields=fields):
                return writer.make(Kind.DATA, self.whole.tags[made.name_hint], [values[i] for i in fields])
            case FlatRefNew(value=value):
                return writer.make(Kind.REF, 0, (values[value],))
            case FlatRefRead(ref=ref):
                return writer.field(writer.object(values[ref]), 0, ty)
            case FlatRefWrite(ref=ref, value=value):
                writer.emit(Store(writer.object(values[ref]), writer.object(values[value])))
                return Fields(())
            case FlatIf() | FlatMatch():
                return (yield self._branched(scope, node, ty))
            case FlatInput():
                raise ValueError("parameters must come first")

    def _branched(self, scope: _Scope, node: FlatIf | FlatMatch, ty: Type) -> Recursion[Value]:
        writer = self.writer
        to = writer.fresh(dtype_of(ty))
        given = self._held(scope, node.captured)
        if isinstance(node, FlatIf):
            test = writer.number(scope.values[node.cond], "bool")
            writer.open()
            yield self._inner(node.then, given, to)
            then = writer.close()
            writer.open()
            yield self._inner(node.otherwise, given, to)
            writer.emit(Branch(to, test, then, writer.close()))
            return to
        value = writer.object(scope.values[node.data])
        arms: list[Arm] = []
        for arm in node.arms:
            writer.open()
            tests, bound = self._bound(arm.pattern, value, arm.body.params[len(node.captured) :])
            yield self._inner(arm.body, [*given, *bound], to)
            arms.append(Arm(tests, writer.close()))
        writer.emit(Match(to, value, tuple(arms)))
        return to

    def _bound(
        self, pattern: FlatPattern, value: Local, params: Sequence[FlatInput]
    ) -> tuple[tuple[Test, ...], list[Value]]:
        """What a pattern tests, and the values that it binds, read at the beginning of its arm."""
        tests: list[Test] = []
        bound: list[Value] = []
        waiting: list[tuple[FlatPattern, tuple[int, ...]]] = [(pattern, ())]
        while waiting:
            part, path = waiting.pop()
            match part:
                case FlatAny(binds=True):
                    bound.append(self._at(value, path, params[len(bound)].type))
                case FlatFields(constructor=constructor, patterns=inner):
                    if constructor is not None:
                        tests.append(Test(path, self.whole.tags[constructor]))
                    waiting += [(one, (*path, k)) for k, one in reversed(list(enumerate(inner)))]
                case FlatAny():
                    pass
        return tuple(tests), bound

    def _at(self, value: Local, path: Sequence[int], ty: Type) -> Value:
        """The object at the end of a path of fields."""
        found: Value = value
        for step in path:
            found = self.writer.field(self.writer.object(found), step, TupleType([]))
        return self.writer.typed(self.writer.object(found), ty)

    # Calls

    def _arguments(self, callee: _Planned, args: Sequence[Value]) -> tuple[Local, ...]:
        forms = [dtype_of(param.type) for param in callee.params]
        return tuple(self.writer.form(value, form) for value, form in zip(args, forms, strict=True))

    def _call(self, callee: _Planned, args: Sequence[Value], ty: Type) -> Value:
        to = self.writer.fresh(callee.result)
        self.writer.emit(Invoke(to, callee.number, self._arguments(callee, args)))
        return self.writer.typed(to, ty) if to.dtype is None else to

    def _applied(self, callee: Value, args: Sequence[Value], ty: Type) -> Value:
        writer = self.writer
        if isinstance(callee, Known):
            return self._call(self.whole.by_number[callee.function], [*callee.held, *args], ty)
        to = writer.fresh()
        writer.emit(Apply(to, writer.object(callee), tuple(map(writer.object, args))))
        return writer.typed(to, ty)

    def _global(self, name: str) -> Value:
        return Known(self.whole.plan(self.whole.flat[name]).number, ())

    def _callback(self, call: FlatCall | FlatInvoke, args: Sequence[Value], ty: Type) -> Value:
        writer = self.writer
        to = writer.fresh()
        writer.emit(Callback(to, self.whole.callback(call), tuple(map(writer.object, args))))
        return writer.typed(to, ty)
