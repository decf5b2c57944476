"""Builds random `@accel_k` functions as the partitioner writes them, and runs compiled programs on the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relay_hw import op
from relay_hw.accel.isa.program import SectionKind
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.analysis import infer_type
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Constant, Expr, Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.op.rows import exponentials
from relay_hw.rounding import ROUNDINGS
from relay_hw.tensorize import Segment, compile_function
from relay_hw.tensorize.layout import pack_activation, unpack_activation
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.validate.proof import validate


class Regions:
    """Layers with random numbers, added one after the other; every method returns a value of the region."""

    def __init__(self, seed: int, config: Target, bits: int = 8) -> None:
        self.rng = np.random.default_rng(seed)
        self.config = config
        # Bits that weights fit, and whether they are numbers of half the array's bits times factors instead; both may
        # change from layer to layer.
        self.bits = bits
        # Whether layers' results go through tables.
        self.tables = False
        self.factored = False
        self.alike = False
        self.params: list[Var] = []
        self._shapes: dict[Expr, tuple[int, ...]] = {}

    def input(self, *shape: int) -> Expr:
        """A parameter [1, *shape] of the region."""
        var = Var(f"x{len(self.params)}", TensorType((1, *shape), "int8"))
        self.params.append(var)
        self._shapes[var] = (1, *shape)
        return var

    def tensor(self, *shape: int) -> Expr:
        """A parameter of this very shape."""
        var = self.input(*shape[1:])
        self.params[-1] = replaced = Var(var.name_hint, TensorType(shape, "int8"))
        self._shapes[replaced] = shape
        return replaced

    def shape(self, value: Expr) -> tuple[int, ...]:
        """Shape of a value."""
        return self._shapes[value]

    def conv(
        self,
        x: Expr,
        channels: int,
        kernel: Sequence[int] = (3, 3),
        strides: Sequence[int] = (1, 1),
        padding: Sequence[int] = (0, 0, 0, 0),
        dilation: Sequence[int] = (1, 1),
        pad_value: int | None = None,
        residual: Expr | None = None,
        swapped: bool = False,
        groups: int = 1,
    ) -> Expr:
        """nn.conv2d, requantize; nn.pad in front where `pad_value` is given; fixed.add with `residual` behind."""
        inner = self._inner(x)
        data: Expr = inner
        own = tuple(padding)
        if pad_value is not None:
            widths = ((0, 0), (0, 0), (own[0], own[2]), (own[1], own[3]))
            data, own = op.nn.pad(data, widths, Constant(np.array(pad_value, np.int8))), (0, 0, 0, 0)
        inputs = self._shapes[x][1] // groups
        weight = Constant(self._int8(channels, inputs, *kernel))
        core = op.nn.conv2d(
            data, weight, strides=strides, padding=own, dilation=dilation, groups=groups, out_dtype="int32"
        )
        depth = inputs * kernel[0] * kernel[1]
        body: Expr = self._requantize(core, channels, depth)
        params, args = [inner], [x]
        if residual is not None:
            second = self._inner(residual, "r")
            params, args = [inner, second], [x, residual]
            body = self._sum(second, body) if swapped else self._sum(body, second)
        return self._call("accel.conv2d", params, body, args)

    def conv_transpose(
        self,
        x: Expr,
        channels: int,
        kernel: Sequence[int] = (4, 4),
        strides: Sequence[int] = (2, 2),
        padding: Sequence[int] = (1, 1, 1, 1),
        dilation: Sequence[int] = (1, 1),
        output_padding: Sequence[int] = (0, 0),
        zero_point: int = 0,
    ) -> Expr:
        """fixed.conv2d_transpose, requantize."""
        inner = self._inner(x)
        weight = Constant(self._int8(channels, self._shapes[x][1], *kernel).swapaxes(0, 1).copy())
        core = op.fixed.conv2d_transpose(
            inner,
            weight,
            strides,
            padding,
            dilation,
            output_padding=output_padding,
            input_zero_point=zero_point,
        )
        depth = self._shapes[x][1] * -(-kernel[0] // strides[0]) * -(-kernel[1] // strides[1])
        return self._call("accel.conv2d_transpose", [inner], self._requantize(core, channels, depth), [x])

    def dense(self, x: Expr, units: int, flatten: bool = True) -> Expr:
        """[nn.batch_flatten] nn.dense, requantize."""
        inner = self._inner(x)
        size = int(np.prod(self._shapes[x]))
        data: Expr = inner
        if len(self._shapes[x]) > 2:
            data = op.nn.batch_flatten(inner) if flatten else op.reshape(inner, (1, size))
        # Inputs of a pixel are neighbours in memory, not in the weight.
        weight = self._int8(units, self._shapes[x][1], size // self._shapes[x][1])
        core = op.nn.dense(data, Constant(weight.reshape(units, size)), out_dtype="int32")
        return self._call("accel.dense", [inner], self._requantize(core, units, size), [x])

    def dense_image(self, x: Expr, channels: int, height: int, width: int) -> Expr:
        """nn.dense, requantize, reshape to an image."""
        inner = self._inner(x)
        size, units = int(np.prod(self._shapes[x])), channels * height * width
        core = op.nn.dense(inner, Constant(self._int8(units, size)), out_dtype="int32")
        body = op.reshape(self._requantize(core, units, size), (1, channels, height, width))
        return self._call("accel.dense", [inner], body, [x])

    def max_pool(
        self,
        x: Expr,
        size: Sequence[int],
        strides: Sequence[int] = (1, 1),
        padding: Sequence[int] = (0, 0, 0, 0),
        dilation: Sequence[int] = (1, 1),
        ceil_mode: bool = False,
    ) -> Expr:
        """nn.max_pool2d."""
        inner = self._inner(x)
        body = op.nn.max_pool2d(inner, size, strides, dilation, padding, ceil_mode=ceil_mode)
        return self._call("accel.max_pool2d", [inner], body, [x])

    def sum_pool(
        self,
        x: Expr,
        size: Sequence[int],
        strides: Sequence[int] = (1, 1),
        padding: Sequence[int] = (0, 0, 0, 0),
        pad_value: int | None = None,
    ) -> Expr:
        """fixed.sum_pool2d, requantize; nn.pad in front where `pad_value` is given."""
        inner = self._inner(x)
        data: Expr = inner
        if pad_value is not None:
            widths = ((0, 0), (0, 0), (padding[0], padding[2]), (padding[1], padding[3]))
            data, padding = op.nn.pad(data, widths, Constant(np.array(pad_value, np.int8))), (0, 0, 0, 0)
        core = op.fixed.sum_pool2d(data, size, strides, padding)
        body = self._requantize(core, self._shapes[x][1], size[0] * size[1] // 64 + 1)
        return self._call("accel.sum_pool2d", [inner], body, [x])

    def move(self, body: Callable[..., Expr], *args: Expr) -> Expr:
        """Operators that move elements of `args`."""
        inner = [self._inner(arg, f"x{number}") for number, arg in enumerate(args)]
        return self._call("accel.move", inner, body(*inner), list(args))

    def rows(self, x: Expr, units: int, second: Expr | None = None, pair: str = "add", swapped: bool = False) -> Expr:
        """nn.dense of every row, requantize; fixed.add or fixed.mul with `second` behind."""
        inner, shape = self._inner(x), self._shapes[x]
        core = op.nn.dense(inner, Constant(self._int8(units, shape[-1])), out_dtype="int32")
        body = self._requantize(core, units, shape[-1], len(shape) - 1)
        if second is None:
            return self._call("accel.dense", [inner], body, [x])
        other = self._inner(second, "r")
        both = (other, body) if swapped else (body, other)
        joined = self._sum(*both) if pair == "add" else self._product(*both)
        return self._call("accel.dense", [inner, other], joined, [x, second])

    def product(self, left: Expr, right: Expr, rest: Expr | None = None) -> Expr:
        """nn.batch_matmul with the second operand transposed, requantize; `rest` joins the second one's channels."""
        args = [left, right, *([rest] if rest else [])]
        inner = [self._inner(arg, name) for arg, name in zip(args, "xrs", strict=False)]
        second = op.concatenate(inner[1:], axis=2) if rest else inner[1]
        core = op.nn.batch_matmul(inner[0], second, out_dtype="int32", transpose_b=True)
        body = self._requantize(core, self._shapes[right][1], self._shapes[left][2], 2)
        return self._call("accel.batch_matmul", inner, body, args)

    def clip(self, x: Expr, low: float, high: float) -> Expr:
        """clip."""
        inner = self._inner(x)
        return self._call("accel.clip", [inner], op.clip(inner, low, high), [x])

    def add(self, y: Expr, r: Expr) -> Expr:
        """fixed.add."""
        left, right = self._inner(y, "y"), self._inner(r, "r")
        return self._call("accel.add", [left, right], self._sum(left, right), [y, r])

    def table(self, x: Expr, results: np.ndarray | None = None) -> Expr:
        """fixed.table on its own."""
        inner = self._inner(x)
        body = self._through(inner) if results is None else op.fixed.table(inner, Constant(results))
        return self._call("accel.table", [inner], body, [x])

    def softmax(
        self, x: Expr, causal: bool = False, lengths: Sequence[int] | Expr | None = None, inside: Sequence[int] = ()
    ) -> Expr:
        """fixed.softmax of the last axis; of a tensor reshaped to `inside`, and back, where that is given.

        `lengths`: numbers, or a value of the region with the bytes of one.
        """
        inner = self._inner(x)
        params, args = [inner], [x]
        if isinstance(lengths, Expr):
            params, args = [inner, self._inner(lengths, "r")], [x, lengths]
        table = Constant(exponentials(float(self.rng.uniform(0.01, 0.3))))
        given = None if lengths is None else Constant(np.array(lengths, np.int32)) if len(params) == 1 else params[1]
        numbers = {
            "multiplier": int(self.rng.integers(1 << 15, 1 << 16)),
            "shift": int(self.rng.integers(3, 9)),
            "zero_point": int(self.rng.integers(-128, 0)),
        }
        data = op.reshape(inner, tuple(inside)) if inside else inner
        body: Expr = op.fixed.softmax(data, table, given, causal=causal, **numbers)
        body = op.reshape(body, self._shapes[x]) if inside else body
        return self._call("accel.softmax", params, body, args)

    def norm(self, x: Expr, centered: bool = True) -> Expr:
        """fixed.layer_norm or fixed.rms_norm of the last axis."""
        inner, columns, shift = self._inner(x), self._shapes[x][-1], int(self.rng.integers(0, 41))
        most = [min(1 << bits, 1 << max(shift - less, 0)) for bits, less in ((15, 4), (31, -5))]
        gain, bias = (self.rng.integers(-high, high, columns) for high in most)
        args = (inner, Constant(gain.astype(np.int16)), Constant(bias.astype(np.int32)), shift)
        numbers = {
            "epsilon": int(self.rng.choice([0, 1, (1 << 48) - 1, int(self.rng.integers(1 << 40))])),
            "zero_point": int(self.rng.integers(-128, 128)),
        }
        if centered:
            return self._call("accel.layer_norm", [inner], op.fixed.layer_norm(*args, **numbers), [x])
        numbers["input_zero_point"] = int(self.rng.integers(-128, 128))
        return self._call("accel.rms_norm", [inner], op.fixed.rms_norm(*args, **numbers), [x])

    def mul(self, y: Expr, r: Expr) -> Expr:
        """fixed.mul, and a table behind it half of the time."""
        left, right = self._inner(y, "y"), self._inner(r, "r")
        body: Expr = self._product(left, right)
        body = self._through(body) if self.config.tables and self.rng.random() < 0.5 else body
        return self._call("accel.mul", [left, right], body, [y, r])

    def pairs(self, count: int, *args: Expr, reordered: Callable[[Expr], Expr] | None = None) -> Expr:
        """A random tree of `count` sums and products of `args`, some behind tables, one operand `reordered`."""
        args, tables = args[: count + 1], self.config.tables
        inner = [self._inner(arg, f"x{number}") for number, arg in enumerate(args)]
        spare = [inner[number % len(inner)] for number in range(count + 1)]
        parts: list[Expr] = [
            reordered(part) if reordered is not None and number == 1 else part for number, part in enumerate(spare)
        ]
        while len(parts) > 1:
            y, r = (parts.pop(int(self.rng.integers(len(parts)))) for _ in range(2))
            joined: Expr = self._sum(y, r) if self.rng.random() < 0.5 else self._product(y, r)
            tables -= (looked := tables > 0 and self.rng.random() < 0.3)
            parts.append(self._through(joined) if looked else joined)
        return self._call("accel.pairs", inner, parts[0], list(args))

    def _through(self, x: Expr) -> Expr:
        return op.fixed.table(x, Constant(self.rng.integers(-128, 128, 256).astype(np.int8)))

    def function(self, *results: Expr) -> Function:
        """The region: a typed function of the parameters so far."""
        body = results[0] if len(results) == 1 else Tuple(results)
        function = Function(self.params, body, attrs={"Compiler": "accel", "global_symbol": "accel_0"})
        return infer_type(IRModule.from_expr(function))["main"]

    def _inner(self, value: Expr, name: str = "x") -> Var:
        return Var(name, TensorType(self._shapes[value], "int8"))

    def _int8(self, *shape: int) -> np.ndarray:
        """Weights [O, I, ...]."""
        if self.factored:
            return self._times_factors(shape)
        high = 1 << (self.bits - 1)
        low = -high
        return self.rng.integers(low, high, shape).astype(np.int8)

    def _times_factors(self, shape: Sequence[int]) -> np.ndarray:
        """Numbers of half the array's bits times a factor for each output channel, tap and entry of inputs."""
        bits, lanes = self.config.wgt_bits, self.config.inp_lanes
        high = 1 << (bits // 2 - 1)
        factors = self.rng.integers(1, 17 if bits == 8 else 5, (shape[0], -(-shape[1] // lanes), *shape[2:]))
        # One that no fewer bits would hold.
        factors.flat[0] = 2
        weights = self.rng.integers(-high, high, shape)
        weights.flat[0] = -high
        return (weights * np.repeat(factors, lanes, axis=1)[:, : shape[1]]).astype(np.int8)

    def _requantize(self, core: Expr, channels: int, depth: int, axis: int = 1) -> Expr:
        bits = self.config.multiplier_bits
        count = channels if self.rng.random() < 0.8 and not self.alike else 1
        multiplier = self.rng.integers(0, 1 << bits, count)
        multiplier[0] = (1 << bits) - 1
        # Sums of `depth` products have about 2**13.3 * sqrt(depth): most results stay inside int8, some saturate.
        shift = np.clip(bits + int(np.log2(40 * np.sqrt(depth))) + self.rng.integers(-1, 2, count), 0, 62)
        low, high = sorted(self.rng.integers(-128, 128, 2).tolist())
        bounds = (low, high) if self.rng.random() < 0.3 else (-128, 127)
        biases = self.rng.integers(-5000, 5000, channels)
        if self.rng.random() < 0.3:
            biases[: 1 + channels // 4] = (1 << 31) - 1  # the sum with any positive accumulator wraps
        if self.alike:
            biases[:] = biases[-1]
        bias = Constant(biases.astype(np.int32))
        scaled = op.fixed.requantize(
            core,
            bias,
            tuple(multiplier.tolist()),
            tuple(shift.tolist()),
            zero_point=int(self.rng.integers(-20, 20)),
            rounding=str(self.rng.choice(ROUNDINGS)),
            a_min=bounds[0],
            a_max=bounds[1],
            axis=axis,
            multiplier_bits=bits,
        )
        return self._through(scaled) if self.tables else scaled

    def _sum(self, y: Expr, r: Expr) -> Call:
        bits = self.config.multiplier_bits
        y_multiplier, r_multiplier = self.rng.integers(0, 1 << bits, 2).tolist()
        return op.fixed.add(
            y,
            r,
            y_multiplier,
            r_multiplier,
            bits - int(self.rng.integers(0, 3)),
            *self.rng.integers(-128, 128, 2).tolist(),
            int(self.rng.integers(-10, 10)),
            str(self.rng.choice(ROUNDINGS)),
            multiplier_bits=bits,
        )

    def _product(self, y: Expr, r: Expr) -> Call:
        bits = min(self.config.multiplier_bits, 22)
        y_zero, r_zero = self.rng.integers(-128, 128, 2).tolist()
        return op.fixed.mul(
            y,
            r,
            multiplier=int(self.rng.integers(0, 1 << bits)),
            shift=bits + int(self.rng.integers(4, 8)),
            y_zero_point=y_zero,
            r_zero_point=r_zero,
            zero_point=int(self.rng.integers(-10, 10)),
            rounding=str(self.rng.choice(ROUNDINGS)),
            multiplier_bits=bits,
        )

    def _call(self, composite: str, params: list[Var], body: Expr, args: list[Expr]) -> Expr:
        typed = infer_type(IRModule.from_expr(Function(params, body)))["main"]
        function = Function(typed.params, typed.body, typed.ret_type, attrs={"Primitive": 1, "Composite": composite})
        call = Call(function, args)
        self._shapes[call] = typed.body.tensor_type.static_shape
        return call


def run(
    segment: Segment,
    inputs: Sequence[np.ndarray],
    config: Target,
    order: int | None = None,
    device: FunctionalDevice | None = None,
) -> list[np.ndarray]:
    """Outputs of one launch on the functional simulator; `order` seeds the order of its units.

    With `device`, on that one as it is, with the program already loaded.
    """
    program = segment.program
    if device is None:
        device = FunctionalDevice(config, order)
        device.load(program)
    for port, value in zip(segment.inputs, inputs, strict=True):
        data = pack_activation(value, config, port.layout)
        device.write(program.tensor_offset(port.name), data.view(np.uint8))
    if program.resident is not None:
        device.launch(SectionKind.RESIDENT)
    device.launch()
    found: list[np.ndarray] = []
    for port in segment.outputs:
        size = pack_activation(np.zeros(port.shape, np.int8), config).size
        found.append(unpack_activation(device.read(program.tensor_offset(port.name), size), port.shape, config))
    return found


def compare(
    function: Function,
    config: Target,
    seed: int = 0,
    order: int | None = None,
    given: Sequence[tuple[str, np.ndarray]] = (),
) -> Segment:
    """Compile, prove, run on random inputs, and hold every output byte against the interpreter.

    It also runs once for each of `given`, an input's name and value, the other inputs at random.
    """
    segment = compile_function(function, config, "accel_0")
    validate(function, segment, config)
    rng = np.random.default_rng(seed)
    for known in ({}, *({name: value} for name, value in given)):
        values = [
            known.get(p.name_hint, rng.integers(-128, 128, p.type_annotation.static_shape).astype(np.int8))
            for p in function.params
        ]
        _equal(function, segment, config, values, seed, order)
    return segment


def _equal(
    function: Function, segment: Segment, config: Target, values: Sequence[np.ndarray], seed: int, order: int | None
) -> None:
    wanted = evaluate(IRModule.from_expr(function), values)
    wanted = list(wanted) if isinstance(wanted, tuple) else [wanted]
    found = run(segment, values, config, order)
    for number, (have, want) in enumerate(zip(found, wanted, strict=True)):
        different = np.argwhere(have != np.asarray(want))
        assert not different.size, (
            f"seed {seed}, configuration {config.name}: output {number} differs first at {tuple(different[0])}: "
            f"{have[tuple(different[0])]} instead of {np.asarray(want)[tuple(different[0])]}\n{segment.schedule}"
        )
