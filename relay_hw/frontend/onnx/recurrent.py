"""ONNX LSTM, GRU and RNN: one product for the inputs of all steps, then a tail-recursive function over the steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw import op
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.loops import Loop, Rows, fix, number, row, run, variable
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node, all_of, known_inputs
from relay_hw.frontend.onnx.qlinear import dynamic_parameters, int_matmul
from relay_hw.frontend.onnx.quantize import MICROSOFT
from relay_hw.ir.expr import Expr, Var
from relay_hw.ir.types import TensorType
from relay_hw.op import const, nn, qnn
from relay_hw.support.names import one_of

Activation = Callable[[Expr], Expr]
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
# onnxruntime's LSTM on int8 weights: what they multiply is quantized on the way.
DYNAMIC = "DynamicQuantize"
# Activations by name: how many of alpha and beta they take, with the defaults.
ALPHAS: Mapping[str, tuple[float, ...]] = {
    "Affine": (1.0,), "LeakyRelu": (0.01,), "ThresholdedRelu": (1.0,), "ScaledTanh": (1.0,), "HardSigmoid": (0.2,),
    "Elu": (1.0,),
}  # fmt: skip
BETAS: Mapping[str, tuple[float, ...]] = {"Affine": (0.0,), "ScaledTanh": (1.0,), "HardSigmoid": (0.5,)}


def _kind(node: Node) -> str:
    return node.operator.removeprefix(DYNAMIC)


def _number(value: float, like: str) -> Expr:
    return const(np.array(value, like))


def _activation(name: str, alpha: float, beta: float, dtype: str) -> Activation:
    """The function of this ONNX name on tensors of `dtype`."""
    zero, one = _number(0.0, dtype), _number(1.0, dtype)
    a, b = _number(alpha, dtype), _number(beta, dtype)
    table: dict[str, Activation] = {
        "Sigmoid": op.sigmoid,
        "Tanh": op.tanh,
        "Relu": nn.relu,
        "Affine": lambda x: op.add(op.multiply(x, a), b),
        "LeakyRelu": lambda x: nn.leaky_relu(x, alpha),
        "ThresholdedRelu": lambda x: op.where(op.greater(x, a), x, op.zeros_like(x)),
        "ScaledTanh": lambda x: op.multiply(op.tanh(op.multiply(x, b)), a),
        "HardSigmoid": lambda x: op.clip(op.add(op.multiply(x, a), b), 0.0, 1.0),
        "Elu": lambda x: op.where(op.less(x, zero), op.multiply(op.subtract(op.exp(op.minimum(x, zero)), one), a), x),
        "Softsign": lambda x: op.divide(x, op.add(op.abs(x), one)),
        "Softplus": lambda x: op.add(op.maximum(x, zero), op.log(op.add(op.exp(op.negative(op.abs(x))), one))),
    }
    return table[name]


NAMES = ("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus", *ALPHAS)
_BY_LOWER = {name.lower(): name for name in NAMES}


def _check(node: Node, known: Known) -> str | None:
    direction = node.attr("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        return f"direction must be forward, reverse or bidirectional, not {direction}"
    for name in node.attr("activations", ()):
        text = name.decode() if isinstance(name, bytes) else str(name)
        if text.lower() not in _BY_LOWER:
            return one_of("activation", NAMES, text)
    return None


def _activations(node: Node, count: int, dtype: str) -> list[list[Activation]]:
    """Activation functions of each direction; alpha and beta go, in order, to those that have them."""
    given = [n.decode() if isinstance(n, bytes) else str(n) for n in node.attr("activations", ())]
    names = [_BY_LOWER[name.lower()] for name in given] or list(DEFAULTS[_kind(node)]) * count
    alphas, betas = iter(node.attr("activation_alpha", ())), iter(node.attr("activation_beta", ()))

    def taken(source: Iterator[float], defaults: tuple[float, ...]) -> float:
        return next(source, defaults[0]) if defaults else 0.0

    made = [
        _activation(name, taken(alphas, ALPHAS.get(name, ())), taken(betas, BETAS.get(name, ())), dtype)
        for name in names
    ]
    each = len(DEFAULTS[_kind(node)])
    return [made[k * each : (k + 1) * each] for k in range(count)]


Product = Callable[[Expr, Expr], Expr]


def _product(node: Node, args: Arguments, index: int, at: int) -> Product:
    """Data times the weight of a direction; `at`: input number of the scale of an int8 weight, then its zero point."""
    if not node.operator.startswith(DYNAMIC):
        return lambda data, weight: nn.dense(data, weight, args.shape(weight)[0])
    scales, zeros = args.array(at), args.array(at + 1)
    assert scales is not None
    scale = const(np.asarray(scales[index], np.float32))
    zero = const(np.zeros((), np.int32) if zeros is None else np.asarray(zeros[index], np.int32))

    def quantized(data: Expr, weight: Expr) -> Expr:
        own = dynamic_parameters(args, data)
        integers = qnn.quantize(data, *own, -1, "uint8", "half_even")
        sums = int_matmul(args, integers, weight, (own[1], zero), (own[0], scale))
        return op.multiply(op.cast(sums, "float32"), op.multiply(own[0], scale))

    return quantized


@dataclass(frozen=True, slots=True)
class Layer:
    """One direction: sizes, weights and functions. `r` is [gates * hidden, hidden]; other parts may be missing."""

    args: Arguments
    node: Node
    steps: int
    batch: int
    hidden: int
    dtype: str
    r: Expr
    recurrent_bias: Expr | None  # GRU: what is added to the recurrent part of the hidden gate
    peepholes: Expr | None
    functions: Sequence[Activation]
    product: Product

    def clipped(self, value: Expr) -> Expr:
        limit = self.node.attr("clip")
        return value if not limit else op.clip(value, -float(limit), float(limit))

    def gates(self, value: Expr, count: int) -> list[Expr]:
        """The parts of [batch, count * hidden]."""
        return [
            op.strided_slice(value, (k * self.hidden,), ((k + 1) * self.hidden,), (1,), axes=(1,)) for k in range(count)
        ]

    def recurrent(self, weight: Expr, state: Expr) -> Expr:
        return self.product(state, weight)


CellStep = Callable[[Layer, "Fixed", Expr, Sequence[Expr]], list[Expr]]


@dataclass(frozen=True, slots=True)
class Fixed:
    """Loop-invariant values of a direction, as variables of its function."""

    r: Expr
    recurrent_bias: Expr | None
    peepholes: Expr | None


def _lstm_step(layer: Layer, fixed: Fixed, x: Expr, states: Sequence[Expr]) -> list[Expr]:
    h, c = states
    f, g, out = layer.functions
    i_in, o_in, f_in, c_in = layer.gates(op.add(x, layer.recurrent(fixed.r, h)), 4)
    peep: list[Expr] | None = None
    if fixed.peepholes is not None:
        size = layer.hidden
        peep = [op.strided_slice(fixed.peepholes, (k * size,), ((k + 1) * size,), (1,), axes=(0,)) for k in range(3)]
        i_in = op.add(i_in, op.multiply(peep[0], c))
        f_in = op.add(f_in, op.multiply(peep[2], c))
    i = f(layer.clipped(i_in))
    if layer.node.attr("input_forget", 0):
        forget: Expr = op.subtract(_number(1.0, layer.dtype), i)
    else:
        forget = f(layer.clipped(f_in))
    new_c = op.add(op.multiply(forget, c), op.multiply(i, g(layer.clipped(c_in))))
    if peep is not None:
        o_in = op.add(o_in, op.multiply(peep[1], new_c))
    return [op.multiply(f(layer.clipped(o_in)), out(new_c)), new_c]


def _gru_step(layer: Layer, fixed: Fixed, x: Expr, states: Sequence[Expr]) -> list[Expr]:
    (h,), size = states, layer.hidden
    f, g = layer.functions
    x_gates = op.strided_slice(x, (0,), (2 * size,), (1,), axes=(1,))
    x_hidden = op.strided_slice(x, (2 * size,), (3 * size,), (1,), axes=(1,))
    bias = fixed.recurrent_bias
    if layer.node.attr("linear_before_reset", 0):
        all_r = layer.recurrent(fixed.r, h)
        r_gates = op.strided_slice(all_r, (0,), (2 * size,), (1,), axes=(1,))
        r_hidden: Expr = op.strided_slice(all_r, (2 * size,), (3 * size,), (1,), axes=(1,))
        z, r = (f(layer.clipped(part)) for part in layer.gates(op.add(x_gates, r_gates), 2))
        r_hidden = op.multiply(r, r_hidden if bias is None else op.add(r_hidden, bias))
    else:
        r_upper = op.strided_slice(fixed.r, (0,), (2 * size,), (1,), axes=(0,))
        r_lower = op.strided_slice(fixed.r, (2 * size,), (3 * size,), (1,), axes=(0,))
        z, r = (f(layer.clipped(part)) for part in layer.gates(op.add(x_gates, layer.recurrent(r_upper, h)), 2))
        r_hidden = layer.recurrent(r_lower, op.multiply(r, h))
        r_hidden = r_hidden if bias is None else op.add(r_hidden, bias)
    new = g(layer.clipped(op.add(x_hidden, r_hidden)))
    return [op.add(op.multiply(op.subtract(_number(1.0, layer.dtype), z), new), op.multiply(z, h))]


def _rnn_step(layer: Layer, fixed: Fixed, x: Expr, states: Sequence[Expr]) -> list[Expr]:
    return [layer.functions[0](layer.clipped(op.add(x, layer.recurrent(fixed.r, states[0]))))]


STEPS: Mapping[str, CellStep] = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN": _rnn_step}


def _part(data: Expr, index: int) -> Expr:
    """Element `index` of the first axis."""
    return op.squeeze(op.strided_slice(data, (index,), (index + 1,), (1,), axes=(0,)), (0,))


def _convert(node: Node, args: Arguments) -> list[Expr]:
    by_batch = bool(node.attr("layout", 0))
    args.shape(args[0], 3, "the data")
    x = op.transpose(args[0], (1, 0, 2)) if by_batch else args[0]
    steps, batch, _ = args.shape(x)
    directions, *sizes = args.shape(args[2], 3, "the recurrent weight")
    hidden = sizes[0] if node.operator.startswith(DYNAMIC) else sizes[1]
    said = node.attr("hidden_size", hidden)
    if said != hidden:
        raise InputError(f"hidden_size of {node.operator} must be that of its weights, {hidden}, not {said}", node.span)
    functions = _activations(node, directions, args.dtype(x))
    kinds = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    parts = [
        _direction(node, args, x, Direction(k, is_reverse, functions[k]), (steps, batch, hidden))
        for k, is_reverse in enumerate(kinds[node.attr("direction", "forward")])
    ]
    outputs, *finals = ([op.expand_dims(part[k], 1 if k == 0 else 0) for part in parts] for k in range(len(parts[0])))
    joined = [_joined(outputs, 1), *(_joined(final, 0) for final in finals)]
    if by_batch:
        return [op.transpose(joined[0], (2, 0, 1, 3)), *(op.transpose(final, (1, 0, 2)) for final in joined[1:])]
    return joined


def _joined(parts: Sequence[Expr], axis: int) -> Expr:
    return parts[0] if len(parts) == 1 else op.concatenate(parts, axis)


@dataclass(frozen=True, slots=True)
class Direction:
    """A direction through the sequence: index of its weights, whether it is reversed, its activations."""

    index: int
    is_reverse: bool
    functions: Sequence[Activation]


def _direction(node: Node, args: Arguments, x: Expr, direction: Direction, sizes: tuple[int, int, int]) -> list[Expr]:
    """Outputs [steps, batch, hidden] and final states [batch, hidden] of one direction."""
    steps, batch, hidden = sizes
    index, is_reverse, functions = direction.index, direction.is_reverse, direction.functions
    dtype = args.dtype(x)
    inputs, recurrent_bias = _inputs(node, args, x, index, sizes)
    peepholes = _part(args[7], index) if _kind(node) == "LSTM" and node.has_input(7) else None
    r = _part(args[2], index)
    product = _product(node, args, index, 10)
    layer = Layer(args, node, steps, batch, hidden, dtype, r, recurrent_bias, peepholes, functions, product)
    fixed: dict[Var, Expr] = {}
    seen = Fixed(
        fix(args, r, "r", fixed),
        None if recurrent_bias is None else fix(args, recurrent_bias, "rb", fixed),
        None if peepholes is None else fix(args, peepholes, "p", fixed),
    )
    all_inputs = fix(args, inputs, "x", fixed)
    lengths = None if not node.has_input(4) else fix(args, op.reshape(args[4], (batch, 1)), "lengths", fixed)

    state = TensorType((batch, hidden), dtype)
    count = 2 if _kind(node) == "LSTM" else 1
    states = [variable(args, name, state) for name in ("h", "c")[:count]]
    starts = [_initial(args, 5 + k, index, state, bool(node.attr("layout", 0))) for k in range(count)]
    rows = Rows(state, steps, at_front=is_reverse)
    args.reserve((steps, *state.static_shape), state.dtype)
    k, collected = variable(args, "i", TensorType((), "int32")), variable(args, "y", rows.type)

    place: Expr = op.subtract(number(steps - 1, "int32"), k) if is_reverse else k
    new = STEPS[_kind(node)](layer, seen, row(all_inputs, place), states)
    shown = new[0]
    if lengths is not None:
        # Behind its end a sequence keeps its state and shows 0.
        inside = op.less(place, lengths)
        new = [op.where(inside, after, before) for after, before in zip(new, states, strict=True)]
        shown = op.where(inside, shown, _number(0.0, dtype))
    carried = dict(zip((k, *states, collected), (number(0, "int32"), *starts, rows.start()), strict=True))
    test = op.less(k, number(steps, "int32"))
    step = [op.add(k, number(1, "int32")), *new, rows.push(collected, shown)]
    return run(args, Loop(_kind(node).lower(), carried, fixed, test, step, [collected, *states]))


def _inputs(node: Node, args: Arguments, x: Expr, index: int, sizes: tuple[int, int, int]) -> tuple[Expr, Expr | None]:
    """Products of all steps with x plus biases, [steps, batch, gates * hidden]; and GRU's bias inside its reset."""
    steps, batch, hidden = sizes
    gates = GATES[_kind(node)]
    flat = op.reshape(x, (steps * batch, args.shape(x)[2]))
    made = _product(node, args, index, 8)(flat, _part(args[1], index))
    recurrent_bias: Expr | None = None
    if node.has_input(3):
        both, size = _part(args[3], index), gates * hidden
        ours = op.strided_slice(both, (0,), (size,), (1,), axes=(0,))
        theirs: Expr = op.strided_slice(both, (size,), (2 * size,), (1,), axes=(0,))
        if node.operator == "GRU" and node.attr("linear_before_reset", 0):
            recurrent_bias = op.strided_slice(theirs, (2 * hidden,), (size,), (1,), axes=(0,))
            upper = op.strided_slice(theirs, (0,), (2 * hidden,), (1,), axes=(0,))
            args.reserve((hidden,), args.dtype(x))
            theirs = op.concatenate([upper, const(np.zeros(hidden, args.dtype(x)))], 0)
        made = nn.bias_add(made, op.add(ours, theirs))
    return op.reshape(made, (steps, batch, gates * hidden)), recurrent_bias


def _initial(args: Arguments, at: int, index: int, state: TensorType, by_batch: bool) -> Expr:
    given = args.get(at)
    if given is None:
        args.reserve(state.static_shape, state.dtype)
        return const(np.zeros(state.static_shape, state.dtype))
    return _part(op.transpose(given, (1, 0, 2)) if by_batch else given, index)


CONVERTERS = (
    *(Converter(name, _convert, _check) for name in GATES),
    Converter(f"{DYNAMIC}LSTM", _convert, all_of(_check, known_inputs(8, 9, 10, 11)), MICROSOFT),
)
