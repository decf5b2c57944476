"""Measure the language: seconds to parse and type a program, and to print it, on one core.

In: nothing. Out: a table. `make bench` adds the numbers to docs/results/performance.json.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import relay_hw as relay
from relay_hw.ir.expr import Expr, Function, Var
from relay_hw.report import table
from relay_hw.text import parse, print_module

T = TypeVar("T")

OPERATORS = 10_000
LETS = 100_000
PARENTHESES = 20_000
REPEATS = 3
# The blocks of each stage of ResNet-50, and the channels of its bottleneck.
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def dataflow(operators: int = OPERATORS) -> str:
    """conv2d, relu, add, repeated, as text."""
    header = "def @main(%x: Tensor[(1, 16, 28, 28), float32], %w: Tensor[(16, 16, 3, 3), float32])"
    lines = ['#[version = "0.0.5"]', f"{header} {{"]
    last = "%x"
    for number in range(0, operators, 3):
        lines.append(f"  %{number} = nn.conv2d({last}, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]);")
        lines.append(f"  %{number + 1} = nn.relu(%{number});")
        lines.append(f"  %{number + 2} = add(%{number + 1}, {last});")
        last = f"%{number + 2}"
    return "\n".join([*lines, f"  {last}", "}", ""])


def lets(count: int = LETS) -> str:
    """A chain of let, each of the one before."""
    lines = ['#[version = "0.0.5"]', "def @main(%v0: int32) {"]
    lines += [f"  let %v{number} = add(%v{number - 1}, 1);" for number in range(1, count + 1)]
    return "\n".join([*lines, f"  %v{count}", "}", ""])


def parentheses(count: int = PARENTHESES) -> str:
    """One variable in many parentheses."""
    return f'#[version = "0.0.5"]\ndef @main(%x: int32) {{ {"(" * count}%x{")" * count} }}\n'


def resnet50() -> str:
    """ResNet-50 for images of 224 x 224, as text; weights are parameters, their shapes left to inference."""
    params: list[Var] = [relay.var("data", shape=(1, 3, 224, 224))]

    def weight(name: str) -> Var:
        params.append(relay.var(name))
        return params[-1]

    def layer(x: Expr, name: str, channels: int, size: int, stride: int = 1) -> Expr:
        kernel, pad = (size, size), size // 2
        x = relay.nn.conv2d(x, weight(f"{name}_weight"), stride, pad, channels=channels, kernel_size=kernel)
        gamma, beta, mean, var = (weight(f"{name}_{part}") for part in ("gamma", "beta", "mean", "var"))
        return relay.nn.batch_norm(x, gamma, beta, mean, var)[0]

    x = relay.nn.relu(layer(params[0], "stem", 64, 7, 2))
    x = relay.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1))
    for stage, (blocks, width) in enumerate(STAGES):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            name = f"stage{stage}_block{block}"
            inner = relay.nn.relu(layer(x, f"{name}_a", width, 1))
            inner = relay.nn.relu(layer(inner, f"{name}_b", width, 3, stride))
            inner = layer(inner, f"{name}_c", 4 * width, 1)
            short = layer(x, f"{name}_short", 4 * width, 1, stride) if block == 0 else x
            x = relay.nn.relu(relay.add(inner, short))
    x = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x))
    x = relay.nn.bias_add(relay.nn.dense(x, weight("fc_weight"), units=1000), weight("fc_bias"))
    return relay.IRModule({"main": Function(params, relay.nn.softmax(x))}).astext()


def seconds(run: Callable[[], T]) -> tuple[float, T]:
    """Processor time of the fastest of some runs, and its result: other work on the machine does not count."""

    def once() -> tuple[float, T]:
        begin = time.process_time()
        result = run()
        return time.process_time() - begin, result

    return min((once() for _ in range(REPEATS)), key=lambda timed: timed[0])


def parse_and_print(text: str) -> tuple[float, float]:
    """Seconds to parse and type, seconds to print."""
    parsed, mod = seconds(lambda: parse(text))
    return parsed, seconds(lambda: print_module(mod))[0]


def measure() -> dict[str, Any]:
    """All numbers."""
    parse("1 + 1")
    parse_and_print(resnet50())
    rows = {f"dataflow_{OPERATORS}": dataflow(), "resnet50": resnet50(), f"lets_{LETS}": lets()}
    rows[f"parentheses_{PARENTHESES}"] = parentheses()
    found: dict[str, Any] = {}
    for name, text in rows.items():
        parsed, printed = parse_and_print(text)
        found[f"{name}_parse_and_type_seconds"] = round(parsed, 3)
        found[f"{name}_print_seconds"] = round(printed, 3)
    return found


def main() -> int:
    """Measure and print."""
    print(table(("what", "seconds"), [(name, str(v)) for name, v in measure().items()], frozenset({"seconds"})))
    return 0


if __name__ == "__main__":
    sys.exit(main())
