"""The typing rules of all kinds of nodes. In: expressions. Out: a type for each node, with holes until `solve` is done.

A call of an operator adds its type relation; a relation that does not know enough waits for the holes in its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from relay_hw.analysis.agreement import Agreement
from relay_hw.analysis.describe import describe
from relay_hw.analysis.kinds import check_type, check_type_args
from relay_hw.analysis.relations import Deferred, operator_relation, projection
from relay_hw.analysis.unmatched import pattern_text, unmatched_cases
from relay_hw.errors import TypeCheckError, WellFormedError
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
from relay_hw.ir.module import IRModule, TypeData
from relay_hw.ir.trampoline import Recursion, run
from relay_hw.ir.types import (
    UNIT,
    DimType,
    FuncType,
    IncompleteType,
    RefType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
    scalar_type,
)
from relay_hw.span import Span


def uncalled(name: str, span: Span | None = None) -> TypeCheckError:
    """The error for an operator that is used as a value."""
    return TypeCheckError(f"operator {name} must be called, not used as a value: wrap it in a function", span)


class Inference:
    """Infers types of one group of mutually recursive functions, or of one expression."""

    def __init__(self, mod: IRModule, known: Mapping[str, FuncType]) -> None:
        self.mod = mod
        self._agreement = Agreement()
        self.solver = self._agreement.solver
        self.types: dict[Expr, Type] = {}
        self.type_args: dict[Call, tuple[Type, ...]] = {}
        self.params: set[Var] = set()
        self._globals = dict(known)
        self._declared: dict[Function, FuncType] = {}
        self._type_scope: list[TypeVar] = []
        self._matches: list[Match] = []
        self._constructors: dict[str, Mapping[str, Constructor]] = {}
        self._where = ""

    def declare_global(self, name: str, function: Function) -> None:
        """Register the annotated type of `function` before any body is typed."""
        self._where = f"@{name}"
        self._globals[name] = self._declare(function)

    def infer_global(self, name: str, function: Function) -> None:
        """Type every node of `function`."""
        self._where = f"@{name}"
        self.infer(function, is_closed=True)

    def infer(self, expr: Expr, is_closed: bool = False) -> Type:
        """Type every node of `expr`; unless `is_closed`, free variables with annotations are allowed."""
        self._is_closed = is_closed
        return run(self._visit(expr))

    def solve(self) -> None:
        """Run deferred relations, then the checks that need final types."""
        self._agreement.drain()
        self.solver.dims.finish()
        for match in self._matches:
            self._check_complete(match)

    def siblings(self, constructor: Constructor) -> Sequence[Constructor]:
        """The constructors of the data type of `constructor`."""
        return self.mod.types[constructor.belong_to.name].constructors

    # Walking

    def _visit(self, node: Expr) -> Recursion[Type]:
        known = self.types.get(node)
        if known is not None:
            return known
        ty = yield _RULES[type(node)](self, node)
        if not isinstance(ty, TensorType):
            self._agreement.check_size(node, ty)
        self.types[node] = ty
        if self._agreement.ready:
            self._agreement.drain()
        return ty

    def _visit_all(self, nodes: Sequence[Expr]) -> Recursion[list[Type]]:
        found: list[Type] = []
        for node in nodes:
            # Most are typed already, and need no step of their own.
            known = self.types.get(node)
            found.append(known if known is not None else (yield self._visit(node)))
        return found

    # Rules

    def _var(self, node: Var) -> Recursion[Type]:
        if node.type_annotation is None or self._is_closed:
            place = f" in {self._where}" if self._where else ""
            raise WellFormedError(f"%{node.name_hint}{place} must be bound before it is used", node.span)
        return self._annotation(node.type_annotation, node.span)
        yield

    def _global_var(self, node: GlobalVar) -> Recursion[Type]:
        ty = self._globals.get(node.name_hint)
        if ty is None:
            raise WellFormedError(f"@{node.name_hint} must be a function of the module", node.span)
        return ty
        yield

    def _constant(self, node: Constant) -> Recursion[Type]:
        if node.data.dtype.kind not in "biufV":
            raise TypeCheckError(f"constant must hold numbers or booleans, not {node.data.dtype}", node.span)
        return TensorType(node.data.shape, str(node.data.dtype))
        yield

    def _op(self, node: Op) -> Recursion[Type]:
        raise uncalled(node.name)
        yield

    def _constructor(self, node: Constructor) -> Recursion[Type]:
        data = self.mod.types.get(node.belong_to.name)
        known = self._constructors_of(data).get(node.name_hint) if data else None
        if data is None or known is None:
            raise WellFormedError(f"constructor {node.name_hint} must be defined in the module", node.span)
        # A type that was read twice, with other type parameters, is the module's all the same.
        return FuncType(tuple(known.inputs), TypeCall(data.header, tuple(data.type_vars)), tuple(data.type_vars))
        yield

    def _constructors_of(self, data: TypeData) -> Mapping[str, Constructor]:
        """A data type's constructors by name, the first of each."""
        name = data.header.name
        if name not in self._constructors:
            self._constructors[name] = {item.name_hint: item for item in reversed(data.constructors)}
        return self._constructors[name]

    def _tuple(self, node: Tuple) -> Recursion[Type]:
        return TupleType((yield self._visit_all(node.fields)))

    def _tuple_get_item(self, node: TupleGetItem) -> Recursion[Type]:
        value = yield self._visit(node.tuple_value)
        return self._agreement.defer(Deferred(node, [value], projection(node)))

    def _let(self, node: Let) -> Recursion[Type]:
        var, value = node.var, node.value
        expected = None if var.type_annotation is None else self._annotation(var.type_annotation, var.span)
        if isinstance(value, Function):
            declared = self._declare(value)
            self.types[var] = self._agreement.agree(expected, declared, f"value of %{var.name_hint}", value, node.span)
        found = yield self._visit(value)
        self.types[var] = self._agreement.agree(expected, found, f"value of %{var.name_hint}", value, node.span)
        return (yield self._visit(node.body))

    def _if(self, node: If) -> Recursion[Type]:
        cond = yield self._visit(node.cond)
        self._agreement.agree(scalar_type("bool"), cond, "condition of if", node.cond, node.span)
        then = yield self._visit(node.true_branch)
        other = yield self._visit(node.false_branch)
        return self._agreement.merge(then, other, "branches of if", node)

    def _function(self, node: Function) -> Recursion[Type]:
        declared = self._declare(node)
        self._type_scope.extend(node.type_params)
        body = yield self._visit(node.body)
        del self._type_scope[len(self._type_scope) - len(node.type_params) :]
        ret = self._agreement.agree(
            declared.ret_type, body, f"result of {self._where or 'function'}", node.body, node.span
        )
        return replace(declared, ret_type=ret if node.ret_type is None else declared.ret_type)

    def _ref_create(self, node: RefCreate) -> Recursion[Type]:
        return RefType((yield self._visit(node.value)))

    def _ref_read(self, node: RefRead) -> Recursion[Type]:
        ref = yield self._visit(node.ref)
        value = IncompleteType()
        self._agreement.agree(RefType(value), ref, "argument of ref_read", node.ref, node.span)
        return self.solver.resolve(value)

    def _ref_write(self, node: RefWrite) -> Recursion[Type]:
        ref = yield self._visit(node.ref)
        value = yield self._visit(node.value)
        found = self.solver.resolve(ref)
        if isinstance(found, RefType):
            self._agreement.agree(found.value, value, "argument 2 of ref_write", node.value, node.span)
        else:
            self._agreement.agree(RefType(value), ref, "argument 1 of ref_write", node.ref, node.span)
        return UNIT

    def _match(self, node: Match) -> Recursion[Type]:
        data = yield self._visit(node.data)
        result: Type = IncompleteType()
        for clause in node.clauses:
            pattern = self._pattern(clause.lhs, node.span)
            self._agreement.agree(data, pattern, f"type of pattern {pattern_text(clause.lhs)}", node)
            arm = yield self._visit(clause.rhs)
            result = self._agreement.merge(result, arm, "arms of match", node)
        self._matches.append(node)
        return result

    def _call(self, node: Call) -> Recursion[Type]:
        if isinstance(node.op, Op):
            types = yield self._visit_all(node.args)
            return self._agreement.defer(Deferred(node, types, operator_relation(node, node.op, self.solver)))
        callee = self.solver.resolve((yield self._visit(node.op)))
        types = yield self._visit_all(node.args)
        if isinstance(callee, IncompleteType):
            callee = self.solver.resolve(callee)
        if isinstance(callee, IncompleteType):
            result = IncompleteType()
            self._agreement.agree(callee, FuncType(tuple(types), result), f"type of {describe(node.op)}", node)
            return result
        if not isinstance(callee, FuncType):
            raise TypeCheckError(f"{describe(node.op)} must be a function to be called, not {callee}", node.span)
        return self._apply(node, callee, types)

    def _apply(self, node: Call, callee: FuncType, types: Sequence[Type]) -> Type:
        name = describe(node.op)
        if len(types) != len(callee.arg_types):
            count = len(callee.arg_types)
            raise TypeCheckError(f"{name} must have {count} argument{'s' * (count != 1)}, not {len(types)}", node.span)
        check_type_args(node, callee, name)
        for given in node.type_args:
            if not isinstance(given, (DimType, ShapeType)):
                self._annotation(given, node.span)
        if isinstance(node.op, GlobalVar):
            callee = self.solver.loosen(callee)
        callee, chosen = self.solver.instantiate(callee, node.type_args)
        if chosen:
            self.type_args[node] = chosen
        for index, (wanted, given) in enumerate(zip(callee.arg_types, types, strict=True), start=1):
            self._agreement.agree(wanted, given, f"argument {index} of {name}", node.args[index - 1], node.span)
        self.solver.dims.place = node.span
        self.solver.require(callee.where, f"call of {name}")
        return self.solver.resolve(callee.ret_type)

    # Parts of the rules

    def _declare(self, function: Function) -> FuncType:
        known = self._declared.get(function)
        if known is not None:
            return known
        self._type_scope.extend(function.type_params)
        args: list[Type] = []
        for param in function.params:
            self.params.add(param)
            if param not in self.types:
                given = param.type_annotation
                self.types[param] = IncompleteType() if given is None else self._annotation(given, param.span)
            args.append(self.types[param])
        ret = IncompleteType() if function.ret_type is None else self._annotation(function.ret_type, function.span)
        del self._type_scope[len(self._type_scope) - len(function.type_params) :]
        for condition in function.where:
            self.solver.dims.assume(condition)
        self._declared[function] = FuncType(tuple(args), ret, tuple(function.type_params), tuple(function.where))
        return self._declared[function]

    def _annotation(self, ty: Type, span: Span | None) -> Type:
        check_type(ty, self.mod.types, self._type_scope, span)
        return ty

    def _pattern(self, pattern: Pattern, span: Span | None) -> Type:
        match pattern:
            case PatternVar(var=var):
                given = var.type_annotation
                self.types[var] = IncompleteType() if given is None else self._annotation(given, var.span)
                return self.types[var]
            case PatternTuple(patterns=inner):
                return TupleType(tuple(self._pattern(part, span) for part in inner))
            case PatternConstructor(constructor=constructor, patterns=inner):
                return self._constructor_pattern(constructor, inner, span)
            case _:
                return IncompleteType()

    def _constructor_pattern(self, constructor: Constructor, inner: Sequence[Pattern], span: Span | None) -> Type:
        whole = run(self._constructor(constructor))
        assert isinstance(whole, FuncType)
        if len(inner) != len(whole.arg_types):
            count = len(whole.arg_types)
            raise TypeCheckError(
                f"pattern {constructor.name_hint} must have {count} part{'s' * (count != 1)}, not {len(inner)}", span
            )
        use, _ = self.solver.instantiate(whole)
        for wanted, part in zip(use.arg_types, inner, strict=True):
            found = self._pattern(part, span)
            self._agreement.unify(wanted, found, f"type of pattern {pattern_text(part)}", span)
        return use.ret_type

    def _check_complete(self, match: Match) -> None:
        if not match.complete:
            return
        missing = unmatched_cases(match, self.siblings)
        if missing:
            cases = ", ".join(map(pattern_text, missing))
            raise TypeCheckError(f"match must have an arm for {cases}, or be written match?", match.span)


_RULES: Mapping[type[Expr], Callable[[Inference, Any], Recursion[Type]]] = {
    Var: Inference._var,
    GlobalVar: Inference._global_var,
    Constant: Inference._constant,
    Op: Inference._op,
    Constructor: Inference._constructor,
    Tuple: Inference._tuple,
    TupleGetItem: Inference._tuple_get_item,
    Call: Inference._call,
    Let: Inference._let,
    If: Inference._if,
    Function: Inference._function,
    RefCreate: Inference._ref_create,
    RefRead: Inference._ref_read,
    RefWrite: Inference._ref_write,
    Match: Inference._match,
}
