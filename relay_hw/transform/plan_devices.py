"""PlanDevices: derives a device for every node from `on_device` annotations, and inserts copies between devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import (
    Call,
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
from relay_hw.ir.visit import Rewriter, children, copy_with, pattern_vars, post_order
from relay_hw.transform.base import Pass
from relay_hw.transform.graph import is_external, is_op, make


class PlanDevices(Pass):
    """Everything that an operator reads and makes is on one device, `default_device` where no annotation reaches.

    `on_device(e, d)` says that `e` is computed on `d`; its value may be wanted elsewhere, unless `constrain_result`.
    Where both differ it becomes a `device_copy`, else it disappears. Functions get the attributes
    `param_virtual_devices` and `result_virtual_device`. Raises UnsupportedError if annotations contradict.
    """

    name = "plan-devices"
    opt_level = 0

    def __init__(self, default_device: object = "cpu(0)") -> None:
        self.default_device = str(default_device)

    def transform(self, mod: IRModule) -> IRModule:
        if not any(is_op(node, "on_device", "device_copy") for f in mod.functions.values() for node in post_order(f)):
            return mod
        plan = _Domains(mod)
        new = {name: self._placed(function, plan) for name, function in mod.functions.items()}
        return mod.with_functions(new)

    def _placed(self, function: Function, plan: _Domains) -> Function:
        if is_external(function):
            return function
        new = _Copier(plan, self.default_device).rewrite(function)
        assert isinstance(new, Function)
        devices = {
            "param_virtual_devices": tuple(plan.device(param) or self.default_device for param in function.params),
            "result_virtual_device": plan.device(function.body) or self.default_device,
        }
        return copy_with(new, attrs={**new.attrs, **devices})


class _Domains:
    """Sets of nodes that are on one device, by union-find."""

    def __init__(self, mod: IRModule) -> None:
        self._mod = mod
        self._parent: dict[Expr, Expr] = {}
        self._devices: dict[Expr, str] = {}
        for function in mod.functions.values():
            values = _function_values(function)
            for node in post_order(function):
                self._constrain(node, values)

    def device(self, node: Expr) -> str | None:
        """The device of `node`, None if nothing decides it."""
        return self._devices.get(self._find(node))

    def _find(self, node: Expr) -> Expr:
        root = node
        while root in self._parent:
            root = self._parent[root]
        while node is not root:
            self._parent[node], node = root, self._parent.get(node, root)
        return root

    def _unify(self, nodes: Iterable[Expr], where: Expr) -> None:
        roots = list(dict.fromkeys(self._find(node) for node in nodes))
        for other in roots[1:]:
            device = self._devices.pop(other, None)
            self._parent[other] = roots[0]
            if device is not None:
                self._put(roots[0], device, where)

    def _put(self, node: Expr, device: str, where: Expr) -> None:
        known = self._devices.setdefault(self._find(node), device)
        if known != device:
            raise UnsupportedError(f"{_title(where)} must be on one device, not on {known} and {device}", where.span)

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


class _Copier(Rewriter):
    def __init__(self, plan: _Domains, default: str) -> None:
        super().__init__()
        self._plan = plan
        self._default = default

    def _rewrite_node(self, node: Expr) -> Expr:
        new = super()._rewrite_node(node)
        same_type = new.checked_type is not None or node.checked_type is None
        return new if same_type else copy_with(new, checked_type=node.checked_type)

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if not is_op(old, "on_device"):
            return new
        source = self._plan.device(old.args[0]) or self._default
        target = self._plan.device(old) or self._default
        if source == target:
            return new.args[0]
        records = {"src_virtual_device": source, "dst_virtual_device": target}
        return make("device_copy", (new.args[0],), span=old.span, **records)
