"""Relay text by a grammar: nearly right programs, whose names, types and numbers are drawn by chance.

In: a seed. Out: the text of a module.
"""

from __future__ import annotations

from random import Random
from typing import Final

_UNARY: Final = ("negative", "nn.relu", "exp", "sigmoid", "nn.softmax", "transpose", "nn.batch_flatten", "copy", "abs")
_BINARY: Final = ("add", "multiply", "nn.dense", "nn.matmul", "maximum", "nn.conv2d", "power", "right_shift", "less")
_INFIX: Final = ("+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=")
_DTYPES: Final = ("float32", "int32", "int8", "bool", "float16", "uint8", "int64", "bfloat16", "float8_e4m3fn", "int4")
_SIZES: Final = ("1", "2", "3", "16", "?", "0", "n", "2 * n", "n - 1", "floordiv(n, 2)", "9223372036854775807")
_NUMBERS: Final = (
    "0",
    "1",
    "-1",
    "2f",
    "3f",
    "4f",
    "1.5f",
    "0.25f64",
    "3i64",
    "7i16",
    "True",
    "inff",
    "-nanf",
    "1e30f16",
    "2147483648",
)
_ATTRIBUTES: Final = (
    "axis=1", "axis=[0, 1]", "padding=[1, 1]", "channels=4", "kernel_size=[3, 3]", "units=8", "shape=[2, -1]",
    'dtype="int8"',
    "newshape=[0, -1]", "axis=99", "strides=[0, 0]", "groups=0", "a_min=0f", "repeats=1000000000",
    "begin=[0]", "reps=[9999]",
)  # fmt: skip


class _Text:
    """One program while it is written."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.names = ["%x", "%y"]
        self.numbers = 0

    def type(self, depth: int = 2) -> str:
        """A type."""
        if self.rng.random() < 0.6:
            return "Tensor[(2, 3), float32]"
        match self.rng.randrange(8 if depth else 5):
            case 5:
                return f"({self.type(depth - 1)}, {self.type(depth - 1)})"
            case 6:
                return f"fn ({self.type(depth - 1)}) -> {self.type(depth - 1)}"
            case 7:
                return f"ref({self.type(depth - 1)})"
            case 0:
                return self.rng.choice(_DTYPES)
            case _:
                sizes = ", ".join(self.rng.choice(_SIZES) for _ in range(self.rng.randrange(5)))
                return f"Tensor[({sizes}), {self.rng.choice(_DTYPES)}]"

    def leaf(self) -> str:
        """A name or a number."""
        if self.rng.random() < 0.8:
            return self.rng.choice(self.names)
        return self.rng.choice((*_NUMBERS, "()", "@other", "Nil", "%unknown"))

    def expr(self, depth: int) -> str:
        """An expression."""
        if depth == 0:
            return self.leaf()
        deeper = depth - 1
        match self.rng.randrange(14):
            case 0 | 1 | 2:
                return f"{self.rng.choice(_UNARY)}({self.expr(deeper)}{self.attributes()})"
            case 3 | 4:
                return f"{self.rng.choice(_BINARY)}({self.expr(deeper)}, {self.expr(deeper)}{self.attributes()})"
            case 5:
                return f"({self.expr(deeper)} {self.rng.choice(_INFIX)} {self.expr(deeper)})"
            case 6:
                return f"({self.expr(deeper)}, {self.expr(deeper)})"
            case 7:
                return f"{self.expr(deeper)}.{self.rng.choice('0129')}"
            case 8:
                return f"if ({self.expr(deeper)}) {{ {self.expr(deeper)} }} else {{ {self.expr(deeper)} }}"
            case 9:
                return f"fn (%p: {self.type()}) {{ {self.block(deeper)} }}"
            case 10:
                return (
                    f"{self.rng.choice(('ref', 'ref_read', 'ref_write', '@main', '@other', '%x'))}({self.expr(deeper)})"
                )
            case 11:
                arms = (
                    f"Cons(%h, %t) => {{ {self.expr(deeper)} }}, {self.rng.choice(('Nil', '_', '%r'))} => {self.leaf()}"
                )
                return f"match ({self.expr(deeper)}) {{ {arms} }}"
            case 12:
                return f"{{ {self.block(deeper)} }}"
            case _:
                return f"[{self.leaf()}, {self.leaf()}]"

    def attributes(self) -> str:
        """Attributes of a call, often none."""
        return "".join(f", {self.rng.choice(_ATTRIBUTES)}" for _ in range(self.rng.choice((0, 0, 0, 1, 2))))

    def block(self, depth: int) -> str:
        """Bindings and a result."""
        lines: list[str] = []
        for _ in range(self.rng.randrange(4)):
            name = f"%{self.numbers}" if self.rng.random() < 0.5 else f"let %v{self.numbers}"
            lines.append(f"{name} = {self.expr(depth)};")
            self.names.append(name.removeprefix("let "))
            self.numbers += 1
        return " ".join([*lines, self.expr(depth)])


def program(rng: Random) -> str:
    """A module of one or two functions."""
    text = _Text(rng)
    lines = ['#[version = "0.0.5"]', "type List[A] { Cons(A, List[A]), Nil }"]
    for name in ("@other", "@main")[rng.randrange(2) :]:
        params = rng.choice(("", "[n: Dim]", "[A]", "[s: Shape, d: BaseType]"))
        result = rng.choice(("", f" -> {text.type()}"))
        lines.append(
            f"def {name}{params}(%x: {text.type()}, %y: {text.type()}){result} {{ {text.block(rng.randrange(5))} }}"
        )
        text.names = ["%x", "%y"]
    return "\n".join(lines)
