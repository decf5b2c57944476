"""The C text of a program: a function for each native function, and one by which callers enter any of them.

In: functions with holders counted, and their `Calls`. Out: C99, which includes the files of `c/`.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import assert_never

from relay_hw.backend.native.c_loops import Expressions, fill, product, reduce
from relay_hw.backend.native.calls import Calls
from relay_hw.backend.native.constructors import KnownConstructor
from relay_hw.backend.native.nodes import (
    C_TYPES,
    Again,
    Apply,
    Arm,
    Block,
    Box,
    Branch,
    Callback,
    Check,
    Constant,
    Drop,
    Field,
    Fill,
    Invoke,
    Keep,
    Kind,
    Local,
    Make,
    Match,
    NativeFunction,
    Product,
    Reduce,
    Return,
    Scalar,
    Set,
    Statement,
    Store,
    TailApply,
    TailInvoke,
    Test,
    Unbox,
    statements,
)
from relay_hw.backend.native.values import tag_of
from relay_hw.support.quote import c_string, comment

_KINDS = {Kind.TUPLE: "RHW_TUPLE", Kind.DATA: "RHW_DATA", Kind.FUNCTION: "RHW_FUNCTION", Kind.REF: "RHW_REF"}


def c_text(
    functions: Sequence[NativeFunction], calls: Calls, constructors: Sequence[KnownConstructor], includes: str
) -> str:
    """The C source of a program; `includes`: lines that bring in the runtime, and `rhw_ask`."""
    most = max((len(function.params) for function in functions), default=0)
    coders = [_FunctionCoder(function, functions, calls) for function in functions]
    lines = [
        f"#define RHW_MOST_ARGS {most + 1}",
        f"#define RHW_CONSTRUCTORS {len(constructors)}",
        "#include <stdint.h>",
    ]
    lines += [_table("static const char *const rhw_names", [c_string(str(one)) for one in constructors])]
    lines += [_table("static const uint32_t rhw_lengths", [str(one.size) for one in constructors])]
    lines += [_table("static const char *const rhw_dtypes", list(map(c_string, C_TYPES))), includes]
    lines += [f"static {coder.head()};" for coder in coders]
    for coder in coders:
        lines += ["", *coder.lines()]
    lines += ["", "static rhw_value *rhw_enter(rhw_run *r, uint32_t function, rhw_value **args) {"]
    lines += ["    switch (function) {", *(f"    {line}" for coder in coders for line in coder.entry())]
    lines += ["    }", '    rhw_fail(r, "a function must be one of the program");', "}"]
    return "\n".join(lines) + "\n"


def _table(head: str, items: Sequence[str]) -> str:
    """An array, of one zero where it would be empty."""
    return f"{head}[] = {{{', '.join(items) or '0'}}};"


def _type(dtype: str | None) -> str:
    return "rhw_value *" if dtype is None else f"{C_TYPES[dtype]} "


def _name(local: Local) -> str:
    return f"v{local.number}"


def _list(locals_: Sequence[Local]) -> str:
    """An array of objects for a call of the runtime, which takes no empty ones."""
    return f"(rhw_value *[]){{{', '.join(map(_name, locals_)) or 'NULL'}}}, {len(locals_)}"


class _FunctionCoder:
    """Writes one function."""

    def __init__(self, function: NativeFunction, functions: Sequence[NativeFunction], calls: Calls) -> None:
        self._function = function
        self._functions = functions
        self._calls = calls
        self._is_deep = function.number in calls.deep

    def _result(self, number: int) -> str | None:
        """What a function gives to its caller: an object where it may postpone a call."""
        return None if number in self._calls.postponed else self._functions[number].result

    def _params(self) -> str:
        return "".join(f", {_type(param.dtype)}{_name(param)}" for param in self._function.params)

    def head(self) -> str:
        """The function's declaration."""
        number = self._function.number
        return f"{_type(self._result(number))}f{number}(rhw_run *r{self._params()})"

    def lines(self) -> list[str]:
        """The function, and the way to it by a new stack where its calls nest deep."""
        body = self._block(self._function.body)
        starts = ["if (rhw_is_low(r)) return " + f"hop{self._function.number}({self._given('')});",
                  "rhw_go_deeper(r);"] if self._is_deep else []  # fmt: skip
        loops = any(isinstance(one, Again) for one in statements(self._function.body))
        lines = [*self._hop()] if self._is_deep else []
        lines += [f"/* @{comment(self._function.name)} */", f"static {self.head()} {{"]
        lines += [f"    {line}" for line in ["(void)r;", *starts, *(["again:;"] if loops else []), *body]]
        return [*lines, "}"]

    def _given(self, prefix: str) -> str:
        return ", ".join([f"{prefix}r", *(f"{prefix}{_name(param)}" for param in self._function.params)])

    def _hop(self) -> list[str]:
        number = self._function.number
        kind = _type(self._result(number))
        fields = "".join(f" {_type(param.dtype)}{_name(param)};" for param in self._function.params)
        return [
            f"typedef struct {{ rhw_run *r;{fields} {kind}result; }} args{number};",
            f"static void hopped{number}(void *given) {{",
            f"    args{number} *a = given;",
            f"    a->result = f{number}({self._given('a->')});",
            "}",
            f"static RHW_NOINLINE {kind}hop{number}(rhw_run *r{self._params()}) {{",
            f"    args{number} a = {{{self._given('')}, 0}};",
            f"    rhw_on_new_stack(r, hopped{number}, &a);",
            "    return a.result;",
            "}",
        ]

    def entry(self) -> list[str]:
        """The case of `rhw_enter` for this function."""
        function = self._function
        lines = [f"case {function.number}: {{", "    (void)args;"]
        names: list[str] = []
        for k, param in enumerate(function.params):
            if param.dtype is None:
                names.append(f"args[{k}]")
                continue
            kind = C_TYPES[param.dtype]
            lines += [f"    const {kind} p{k} = *({kind} *)rhw_read(r, args[{k}], {tag_of(param.dtype)}, 1);",
                      f"    rhw_drop(r, args[{k}]);"]  # fmt: skip
            names.append(f"p{k}")
        call = f"f{function.number}({', '.join(['r', *names])})"
        dtype = self._result(function.number)
        if dtype is None:
            return [*lines, f"    return {call};", "}"]
        lines += [f"    const {C_TYPES[dtype]} result = {call};", f"    rhw_value *v = {_boxed(dtype)};"]
        return [*lines, f"    *({C_TYPES[dtype]} *)rhw_data(v) = result;", "    return v;", "}"]

    # Statements

    def _block(self, block: Block) -> list[str]:
        return [line for statement in block for line in self._statement(statement)]

    def _statement(self, statement: Statement) -> list[str]:
        match statement:
            case Set(to=to, value=value):
                return [f"{_name(to)} = {_name(value)};"]
            case Constant(to=to, index=index):
                return [_new(to, f"rhw_keep(r->constants[{index}])")]
            case Scalar(to=to, value=value):
                made = Expressions("a")
                text = made.text(value, ())
                if not made.pointers and len(made.lines) <= 1:
                    return [_new(to, made.lines[0].split(" = ", 1)[1].removesuffix(";") if made.lines else text)]
                inner = [*made.pointers, *made.lines, f"{_name(to)} = {text};"]
                return [f"{_type(to.dtype)}{_name(to)};", "{", *_indented(inner), "}"]
            case Box(to=to, value=value):
                assert value.dtype is not None
                kind = C_TYPES[value.dtype]
                return [_new(to, _boxed(value.dtype)), f"*({kind} *)rhw_data({_name(to)}) = {_name(value)};"]
            case Unbox(to=to, value=value):
                assert to.dtype is not None
                return [_new(to, f"*({C_TYPES[to.dtype]} *)rhw_read(r, {_name(value)}, {tag_of(to.dtype)}, 1)")]
            case Fill(to=to):
                return [f"rhw_value *{_name(to)};", *fill(statement)]
            case Reduce(to=to):
                return [f"rhw_value *{_name(to)};", *reduce(statement)]
            case Product(to=to):
                return [f"rhw_value *{_name(to)};", *product(statement)]
            case Callback(to=to, number=number, args=args):
                return [_new(to, f"rhw_ask(r, {number}, {_list(args)})")]
            case Check(value=value, what=what):
                return [f"rhw_check(r, {_name(value)}, {c_string(what)});"]
            case Make():
                return self._make(statement)
            case Field(to=to, value=value, index=index):
                return [_new(to, f"rhw_field(r, {_name(value)}, {index})")]
            case Store(ref=ref, value=value):
                return [f"rhw_write(r, {_name(ref)}, {_name(value)});"]
            case Keep(value=value):
                return [f"{_name(value)}->count++;"]
            case Drop(value=value):
                return [f"rhw_drop(r, {_name(value)});"]
            case Invoke() | Apply() | Again() | TailInvoke() | TailApply() | Return():
                return self._call(statement)
            case Branch(to=to, cond=cond, then=then, otherwise=otherwise):
                lines = [f"if ({_name(cond)}) {{", *_indented(self._block(then)), "} else {"]
                return [*_declared(to), *lines, *_indented(self._block(otherwise)), "}"]
            case Match():
                return self._match(statement)
            case _:
                assert_never(statement)

    def _make(self, statement: Make) -> list[str]:
        name, count = _name(statement.to), len(statement.fields)
        has_tag = statement.kind in (Kind.DATA, Kind.FUNCTION)
        tag = str(statement.tag) if has_tag else "RHW_NO_TAG"
        text = f"rhw_new_fields(r, {_KINDS[statement.kind]}, {tag}, {count})"
        fields = [f"rhw_fields({name})[{k}] = {_name(one)};" for k, one in enumerate(statement.fields)]
        return [_new(statement.to, text), *fields]

    def _match(self, statement: Match) -> list[str]:
        lines = _declared(statement.to)
        for k, arm in enumerate(statement.arms):
            lines += [f"{'} else ' if k else ''}if ({_tests(arm, statement.value)}) {{"]
            lines += _indented(self._block(arm.block))
        return [*lines, "} else {", f"    rhw_no_arm(r, {_name(statement.value)});", "}"]

    def _call(self, statement: Invoke | Apply | Again | TailInvoke | TailApply | Return) -> list[str]:
        leave = ["r->depth--;"] if self._is_deep else []
        match statement:
            case Invoke(to=to, function=number, args=args):
                return self._invoke(to, number, args)
            case Apply(to=to, callee=callee, args=args):
                return [_new(to, f"rhw_apply(r, {_name(callee)}, {_list(args)})")]
            case Return(value=value):
                if value.dtype is not None and self._result(self._function.number) is None:
                    kind = C_TYPES[value.dtype]
                    lines = [f"rhw_value *result = {_boxed(value.dtype)};"]
                    lines += [f"*({kind} *)rhw_data(result) = {_name(value)};", *leave, "return result;"]
                    return ["{", *_indented(lines), "}"]
                return [*leave, f"return {_name(value)};"]
            case Again(args=args):
                return self._again(args)
            case TailInvoke(function=number, args=args):
                lines: list[str] = []
                for k, arg in enumerate(args):
                    if arg.dtype is None:
                        lines.append(f"r->next_args[{k}] = {_name(arg)};")
                        continue
                    lines += [f"r->next_args[{k}] = {_boxed(arg.dtype)};",
                              f"*({C_TYPES[arg.dtype]} *)rhw_data(r->next_args[{k}]) = {_name(arg)};"]  # fmt: skip
                return [*lines, *leave, f"return rhw_postpone(r, {number}, {len(args)});"]
            case TailApply(callee=callee, args=args):
                return [*leave, f"return rhw_postpone_apply(r, {_name(callee)}, {_list(args)});"]

    def _invoke(self, to: Local, number: int, args: Sequence[Local]) -> list[str]:
        call = f"f{number}({', '.join(['r', *map(_name, args)])})"
        if number not in self._calls.postponed:
            return [_new(to, call)]
        if to.dtype is None:
            return [_new(to, f"rhw_finish(r, {call})")]
        kind = C_TYPES[to.dtype]
        lines = [f"rhw_value *given = rhw_finish(r, {call});"]
        lines += [f"{_name(to)} = *({kind} *)rhw_read(r, given, {tag_of(to.dtype)}, 1);", "rhw_drop(r, given);"]
        return [f"{kind} {_name(to)};", "{", *_indented(lines), "}"]

    def _again(self, args: Sequence[Local]) -> list[str]:
        pairs = [(param, arg) for param, arg in zip(self._function.params, args, strict=True) if param != arg]
        lines = [f"const {C_TYPES[arg.dtype]} n{k} = {_name(arg)};" if arg.dtype else
                 f"rhw_value *const n{k} = {_name(arg)};" for k, (_, arg) in enumerate(pairs)]  # fmt: skip
        lines += [f"{_name(param)} = n{k};" for k, (param, _) in enumerate(pairs)]
        return ["{", *_indented([*lines, "goto again;"]), "}"]


def _new(to: Local, text: str) -> str:
    return f"{_type(to.dtype)}{_name(to)} = {text};"


def _declared(to: Local | None) -> list[str]:
    return [] if to is None else [f"{_type(to.dtype)}{_name(to)};"]


def _boxed(dtype: str) -> str:
    return f"rhw_new_tensor(r, {tag_of(dtype)}, 0, 1)"


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _tests(arm: Arm, value: Local) -> str:
    return " && ".join(_test(test, value) for test in arm.tests) or "1"


def _test(test: Test, value: Local) -> str:
    path = _name(value)
    for step in test.path:
        path = f"rhw_at(r, {path}, {step})"
    return f"{path}->tag == {test.tag}"
