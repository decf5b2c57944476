"""PlanDevices: derives a device for every node from `on_device` annotations, and inserts copies between devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

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
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter, children, copy_with, pattern_vars, post_order, rebuild
from relay_hw.transform.base import Pass
from relay_hw.transform.graph import TypedRewriter, is_external, is_op, make, typed

PARAMS: Final = "param_virtual_devices"
RESULT: Final = "result_virtual_device"


class PlanDevices(Pass):
    """Everything that an operator reads and makes is on one device, `default_device` where no annotation reaches.

    `on_device(e, d)` says that `e` is computed on `d`; unless `constrain_result`, each that reads it may be elsewhere.
    Where both differ it becomes a `device_copy`, one for each device that reads the value, else it disappears.
    Constants are where they are read. Functions get the attributes `param_virtual_devices` and
    `result_virtual_device`, which are kept where a function has them. A device without a number is its kind's first:
    `cpu` is `cpu(0)`. Raises UnsupportedError if annotations contradict.
    """

    name = "plan-devices"
    opt_level = 0

    def __init__(self, default_device: object = "cpu(0)") -> None:
        self.default_device = device_name(str(default_device))

    def transform(self, mod: IRModule) -> IRModule:
        if not names_devices(mod):
            return mod
        own = {name: function for name, function in mod.functions.items() if not is_external(function)}
        split = mod.with_functions({name: _function(_OnePerUse(), function) for name, function in own.items()})
        plan = Places(split, self.default_device)
        return split.with_functions({name: _placed(split[name], plan) for name in own})


def device_name(text: str) -> str:
    """A device with its number: `cpu` is `cpu(0)`."""
    return text if not text or text.endswith(")") else f"{text}(0)"


def names_devices(mod: IRModule) -> bool:
    """Whether anything in the module says which device it is on."""
    functions = mod.functions.values()
    if any(PARAMS in function.attrs for function in functions):
        return True
    return any(is_op(node, "on_device", "device_copy") for function in functions for node in post_order(function))


def _function(rewriter: Rewriter, function: Function) -> Function:
    new = rewriter.rewrite(function)
    assert isinstance(new, Function)
    return new


def _placed(function: Function, plan: Places) -> Function:
    new = _function(_Copier(plan), function)
    devices = {PARAMS: tuple(map(plan.device, function.params)), RESULT: plan.device(function.body)}
    return copy_with(new, attrs={**new.attrs, **devices})


class Places:
    """The device of each node of a module: sets of nodes that are on one device, by union-find.

    Raises UnsupportedError if annotations contradict.
    """

    def __init__(self, mod: IRModule, default: str) -> None:
        """`default`: the device of what no annotation reaches."""
        self._mod = mod
        self._default = default
        self._parent: dict[Expr, Expr] = {}
        self._devices: dict[Expr, str] = {}
        for function in mod.functions.values():
            values = _function_values(function)
            self._known(function)
            for node in post_order(function):
                self._constrain(node, values)

    def device(self, node: Expr) -> str:
        """The device of `node`."""
        return self._devices.get(self._find(node), self._default)

    def _find(self, node: Expr) -> Expr:
        root = node
        while root in self._parent:
            root = self._parent[root]
        while node is not root:
            self._parent[node], node = root, self._parent.get(node, root)
        return root

    def _unify(self, nodes: Iterable[Expr], where: Expr) -> None:
        roots = list(dict.fromkeys(self._find(node) for node in nodes if not isinstance(node, Constant)))
        for other in roots[1:]:
            device = self._devices.pop(other, None)
            self._parent[other] = roots[0]
            if device is not None:
                self._put(roots[0], device, where)

    def _put(self, node: Expr, device: str, where: Expr) -> None:
        wanted = device_name(device)
        if not wanted or isinstance(node, Constant):
            return
        known = self._devices.setdefault(self._find(node), wanted)
        if known != wanted:
            raise UnsupportedError(
                f"{_title(where)} must be on one device, not on {known} and {wanted}: on_device for what comes from "
                "elsewhere copies it",
                where.span,
            )

    def _known(self, function: Function) -> None:
        """What a plan made before says of a function."""
        for param, device in zip(function.params, function.attrs.get(PARAMS, ()), strict=False):
            self._put(param, str(device), param)
        self._put(function.body, str(function.attrs.get(RESULT, "")), function.body)

    def _constrain(self, node: Expr, values: set[Expr]) -> None:
        match node:
            case Call(op=Op(name="on_device"), args=(body,), attrs=attrs):
                self._annotated(node, body, attrs)
            case Call(op=Op(name="device_copy"), args=(body,), attrs=attrs):
                self._put(body, attrs.src_virtual_device, node)
                self._put(node, attrs.dst_virtual_device, node)
            case Call(op=Op() | Constructor(), args=args):
                self._unify((node, *args), node)
            case Call(op=op, args=args):
                self._call(node, op, args)
            case Let(var=var, value=value, body=body):
                self._unify((var, value), node)
                self._unify((node, body), node)
            case Function(params=params, body=body):
                if node in values:
                    self._unify((node, *params, body), node)
            case GlobalVar(name_hint=name):
                if node in values:
                    target = self._mod[name]
                    self._unify((node, target, *target.params, target.body), node)
            case If() | Match() | Tuple() | TupleGetItem() | RefCreate() | RefRead() | RefWrite():
                self._unify((node, *_data_parts(node)), node)
            case _:
                pass

    def _annotated(self, node: Call, body: Expr, attrs: Any) -> None:
        if attrs.constrain_body:
            self._put(body, attrs.virtual_device, node)
        if attrs.constrain_result:
            self._put(node, attrs.virtual_device, node)

    def _call(self, node: Call, op: Expr, args: Sequence[Expr]) -> None:
        target = self._mod[op] if isinstance(op, GlobalVar) else op
        if not isinstance(target, Function):
            self._unify((node, op, *args), node)
            return
        for param, arg in zip(target.params, args, strict=True):
            self._unify((param, arg), node)
        self._unify((node, target.body), node)


def _function_values(root: Function) -> set[Expr]:
    """Functions and names of functions that are used as values, not only called."""
    found: set[Expr] = set()
    for node in post_order(root):
        parts = node.args if isinstance(node, Call) else children(node)
        found.update(part for part in parts if isinstance(part, (Function, GlobalVar)))
    return found


def _data_parts(node: Expr) -> tuple[Expr, ...]:
    if isinstance(node, Match):
        names = (var for clause in node.clauses for var in pattern_vars(clause.lhs))
        return (node.data, *names, *(clause.rhs for clause in node.clauses))
    return children(node)


def _title(node: Expr) -> str:
    match node:
        case Call(op=Op(name=name)):
            return f"what {name} reads and makes"
        case Let(var=Var(name_hint=name)):
            return f"%{name}"
        case _:
            return f"what {type(node).__name__} reads and makes"


class _OnePerUse(TypedRewriter):
    """Gives each reader of a value that may be wanted elsewhere an `on_device` of its own."""

    def _rewrite_node(self, node: Expr) -> Expr:
        new = super()._rewrite_node(node)
        parts = children(new)
        free = {part: copy_with(part) for part in parts if is_op(part, "on_device") and not _holds_result(part)}
        return typed(rebuild(new, {part: free.get(part, part) for part in parts}), new.checked_type) if free else new


def _holds_result(node: Expr) -> bool:
    return isinstance(node, Call) and bool(node.attrs.constrain_result)


class _Copier(TypedRewriter):
    def __init__(self, plan: Places) -> None:
        super().__init__()
        self._plan = plan
        self._copies: dict[tuple[Expr, str, str], Expr] = {}

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if not is_op(old, "on_device"):
            return new
        source, target = self._plan.device(old.args[0]), self._plan.device(old)
        if source == target or isinstance(new.args[0], Constant):
            return new.args[0]
        key = (new.args[0], source, target)
        if key not in self._copies:
            records = {"src_virtual_device": source, "dst_virtual_device": target}
            self._copies[key] = make("device_copy", (new.args[0],), span=old.span, **records)
        return self._copies[key]
