"""Matches one composite function to a kernel, or gives the reason why this configuration cannot run it.

In: Relay functions whose `Composite` attribute names the pattern; parameters carry tensor types. Out: `Matched`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Array, Call, Expr, Function, Tuple, Var
from relay_hw.tensorize.kernel import (
    ConvKernel,
    GateKernel,
    Image,
    KernelSpec,
    Move,
    MoveKernel,
    PoolKernel,
    PoolKind,
    ProductKernel,
    SwapKernel,
    Window,
)
from relay_hw.tensorize.layout import image_of, pixel_bytes, units_as_image
from relay_hw.tensorize.match.moves import read_moves
from relay_hw.tensorize.match.pairs import ADD, MUL, PairsReader
from relay_hw.tensorize.match.reader import Reader
from relay_hw.tensorize.match.reading import (
    INT8_MAX,
    INT8_MIN,
    Stage,
    check_products,
    cover,
    dilation_of,
    four,
    need,
    pair,
    reshaped_image,
    target_of,
    var_type,
    with_padding,
)
from relay_hw.tensorize.match.rows import RowReader, bound_constants
from relay_hw.tensorize.match.transpose import Spread, transpose_kernel
from relay_hw.tensorize.stages import AddStage, MulStage, Table

PREFIX = "accel."


@dataclass(frozen=True, slots=True)
class Matched:
    """A kernel, the composite's parameters that it reads (by number, in kernel order) and its result's shape.

    `constants`: activations that the kernel reads behind those.
    """

    kernel: KernelSpec
    params: tuple[int, ...]
    shape: tuple[int, ...]
    constants: tuple[Array, ...] = ()


def match(composite: Function, config: AccelConfig) -> Matched:
    """Match a composite function to a kernel. Raises TensorizeError with the reason when `config` cannot run it."""
    name = str(composite.attrs.get("Composite", ""))
    reader = _Reader(composite, config)
    match name.removeprefix(PREFIX):
        case "conv2d" | "dense":
            return reader.conv_or_dense()
        case "conv2d_transpose":
            return reader.conv_transpose()
        case "move":
            return reader.move()
        case "clip":
            return reader.clip()
        case "table":
            return reader.table()
        case "mul":
            return reader.mul()
        case "add" | "pairs":
            return reader.pairs()
        case "batch_matmul":
            return reader.product()
        case "max_pool2d":
            return reader.max_pool()
        case "sum_pool2d":
            return reader.sum_pool()
        case "softmax" | "layer_norm" | "rms_norm":
            return reader.rows()
        case _:
            raise TensorizeError(f"composite must be one of accel's patterns, not {name!r}", composite.span)


@dataclass(frozen=True, slots=True)
class _Reader(Reader):
    """One method for each pattern."""

    def conv_or_dense(self) -> Matched:
        """[pad] conv2d or [flatten] dense, requantize, [add or mul]."""
        body, table = self._through_table(self.composite.body)
        call = self._call(body)
        if self._name(call) == "reshape":
            return self._dense_to_image(call)
        name = self._name(call)
        if name not in (ADD, MUL):
            stage, core = self._requantize(self.composite.body)
            return self._core(core, stage, None, None)
        sides = [side for side in call.args if isinstance(side, Call)]
        others = [side for side in call.args if isinstance(side, Var)]
        need(len(sides) == 1 and len(others) == 1, f"{name} must join one parameter and the requantized sum", call)
        stage, core = self._requantize(sides[0])
        read = self._add_stage if name == ADD else self._mul_stage
        return self._core(core, stage, read(call, call.args[0] is others[0], table), others[0])

    def _dense_to_image(self, call: Call) -> Matched:
        """A dense layer whose vector becomes an image [1, C, H, W]: its units in the order of the image's bytes."""
        stage, core = self._requantize(call.args[0])
        found = self._core(core, stage, None, None)
        need(len(found.shape) == 2, f"reshape to an image must be of one vector, not of rows {found.shape}", call)
        shape = reshaped_image(call, found.shape[1])
        kernel = found.kernel
        assert isinstance(kernel, ConvKernel)
        return Matched(units_as_image(kernel, image_of(shape), self.config), found.params, shape)

    def conv_transpose(self) -> Matched:
        """conv2d_transpose, requantize."""
        stage, core = self._requantize(self._call(self.composite.body))
        call = self._call(core, "fixed.conv2d_transpose")
        attrs = call.attrs
        need(attrs.groups == 1, f"groups must be 1, not {attrs.groups}", call)
        need(attrs.data_layout == "NCHW", f"data_layout must be NCHW, not {attrs.data_layout}", call)
        need(attrs.kernel_layout == "IOHW", f"kernel_layout must be IOHW, not {attrs.kernel_layout}", call)
        param = self._param(call.args[0], call)
        source = self._image(self.composite.params[param])
        weights = self._constant(call.args[1], "weight", "int8", 4)
        inputs, outputs = weights.shape[:2]
        need(inputs == source.channels, f"weight must have {source.channels} input channels, not {inputs}", call)
        spread = Spread(
            pair(attrs.strides, call), pair(attrs.dilation, call), four(attrs.padding, call), attrs.input_zero_point
        )
        extra = pair(attrs.output_padding, call)
        sizes = [
            (size - 1) * spread.strides[axis] + (weights.shape[2 + axis] - 1) * spread.dilation[axis] + 1
            + extra[axis] - spread.padding[axis] - spread.padding[axis + 2]
            for axis, size in enumerate((source.height, source.width))
        ]  # fmt: skip
        need(min(sizes) >= 1, f"result must be at least one pixel, not {sizes[0]}x{sizes[1]}", call)
        target = Image(sizes[0], sizes[1], outputs)
        kernel = transpose_kernel(source, target, weights, spread, self._scale(stage, outputs, call))
        return Matched(kernel, (param,), (1, outputs, *sizes))

    def move(self) -> Matched:
        """Operators that move elements."""
        kernel, shape = read_moves(self.composite, self.config)
        identity = (np.eye(self.config.block_in, dtype=np.int8),) if isinstance(kernel, SwapKernel) else ()
        return Matched(kernel, tuple(range(len(self.composite.params))), shape, identity)

    def clip(self) -> Matched:
        """clip on int8: a copy between bounds."""
        call = self._call(self.composite.body, "clip")
        bounds = (max(ceil(call.attrs.a_min), INT8_MIN), min(floor(call.attrs.a_max), INT8_MAX))
        need(bounds[0] <= bounds[1], f"clip must leave an int8 value, not {bounds[0]} to {bounds[1]}", call)
        return self._copied(call.args[0], call, bounds)

    def table(self) -> Matched:
        """A table on its own: a copy whose values go through it."""
        body, table = self._through_table(self.composite.body)
        return self._copied(body, self.composite.body, table=table)

    def _copied(
        self, data: Expr, at: Expr, bounds: tuple[int, int] = (INT8_MIN, INT8_MAX), table: Table | None = None
    ) -> Matched:
        """All of an activation, to the same places, between bounds and through a table."""
        param = self._param(data, at)
        image = self._image(self.composite.params[param])
        pixel = pixel_bytes(image, self.config)
        size = (image.height, image.width, pixel // self.config.channel_align)
        move = Move(0, 0, image.width * pixel, pixel, size, (0, 0), (1, 1), 0)
        return Matched(MoveKernel((image,), image, (move,), bounds, table), (param,), self._shape(param))

    def product(self) -> Matched:
        """batch_matmul of two parameters, requantize."""
        stage, core = self._requantize(self._call(self.composite.body))
        call = self._call(core, "nn.batch_matmul")
        attrs = call.attrs
        need(attrs.out_dtype == "int32", f"out_dtype must be int32, not {attrs.out_dtype}", call)
        need(not attrs.transpose_a and attrs.transpose_b, "batch_matmul must transpose its second operand alone", call)
        check_products(self.config)
        params = tuple(self._param(arg, call) for arg in (call.args[0], *self._parts(call.args[1])))
        left, right, *rest = (self._image(self.composite.params[number]) for number in params)
        heads = (left.height, right.height)
        need(heads[0] == heads[1], f"operands must have one number of matrices, not {heads[0]} and {heads[1]}", call)
        shape = (left.height, left.width, right.width)
        scale = self._scale(stage, right.width, call, axis=2)
        return Matched(ProductKernel(left, right, Image(*shape), scale, rest=rest[0] if rest else None), params, shape)

    def _parts(self, operand: Expr) -> Sequence[Expr]:
        """A product's second operand, or the two whose channels it joins, the first one in whole blocks."""
        if not isinstance(operand, Call):
            return (operand,)
        call = self._call(operand, "concatenate")
        parts = call.args[0]
        need(isinstance(parts, Tuple) and len(parts.fields) == 2, "products must join two operands at most", call)
        assert isinstance(parts, Tuple)
        need(call.attrs.axis % 3 == 2, f"operands of products must be joined along axis 2, not {call.attrs.axis}", call)
        channels = var_type(self.composite.params[self._param(parts.fields[0], call)]).static_shape[-1]
        block = self.config.block_in
        sentence = f"operands of products must be joined behind blocks of {block}, not {channels}"
        need(channels % block == 0, sentence, call)
        return parts.fields

    def max_pool(self) -> Matched:
        """[pad] max_pool2d on int8."""
        call = self._call(self.composite.body, "nn.max_pool2d")
        return self._pool(call, PoolKind.MAX, None)

    def sum_pool(self) -> Matched:
        """sum_pool2d, requantize."""
        stage, core = self._requantize(self._call(self.composite.body))
        return self._pool(self._call(core, "fixed.sum_pool2d"), PoolKind.SUM, stage)

    def pairs(self) -> Matched:
        """fixed.add and fixed.mul of parameters and of each other; [table] behind each."""
        kernel, shape = PairsReader(self.composite, self.config).pairs()
        return Matched(kernel, tuple(range(len(self.composite.params))), shape)

    def rows(self) -> Matched:
        """softmax or a norm of rows of a parameter; a softmax may be bounded by another one."""
        reader = RowReader(self.composite, self.config)
        kernel, shape = reader.rows()
        return Matched(kernel, reader.params(), shape, bound_constants(kernel, self.config))

    def mul(self) -> Matched:
        """fixed.mul of two parameters, of which the second may be one pixel; [table]."""
        body, table = self._through_table(self.composite.body)
        call = self._call(body, MUL)
        params = tuple(self._param(arg, call) for arg in call.args)
        left, right = map(self._shape, params)
        if left == right:
            return self.pairs()
        need(right == (1, left[1], 1, 1), f"operands must be one shape or one pixel, not {right}", call)
        image = self._image(self.composite.params[params[0]])
        return Matched(GateKernel(image, self._mul_stage(call, False, table)), params, left)

    def _shape(self, param: int) -> tuple[int, ...]:
        return var_type(self.composite.params[param]).static_shape

    def _core(self, call: Expr, stage: Stage, added: AddStage | MulStage | None, residual: Var | None) -> Matched:
        core = self._call(call)
        match self._name(core):
            case "nn.conv2d":
                kernel, param = self._conv(core, stage, added)
                target = kernel.target
                shape = (1, target.channels, target.height, target.width)
            case "nn.dense":
                kernel, param = self._dense(core, stage, added)
                given = self._shape(param)
                rows = given[:-1] if len(given) < 4 and not self._flattens(core.args[0]) else (1,)
                shape = (*rows, kernel.target.channels)
            case other:
                raise TensorizeError(f"operator must be nn.conv2d or nn.dense, not {other}", core.span)
        if residual is None:
            return Matched(kernel, (param,), shape)
        second = self._param(residual, core)
        given = var_type(residual).static_shape
        self._image(residual)
        name = ADD if isinstance(added, AddStage) else MUL
        need(given == shape, f"operands of {name} must have one shape, not {shape} and {given}", core)
        return Matched(kernel, (param, second), shape)

    def _conv(self, call: Call, stage: Stage, added: AddStage | MulStage | None) -> tuple[ConvKernel, int]:
        attrs = call.attrs
        need(added is None or attrs.groups == 1, "a convolution of groups must not add a second operand", call)
        need(attrs.data_layout == "NCHW", f"data_layout must be NCHW, not {attrs.data_layout}", call)
        need(attrs.kernel_layout == "OIHW", f"kernel_layout must be OIHW, not {attrs.kernel_layout}", call)
        need(attrs.out_dtype == "int32", f"out_dtype must be int32, not {attrs.out_dtype}", call)
        param, source, padding, value = self._padded(call.args[0])
        weights = self._constant(call.args[1], "weight", "int8", 4)
        channels = weights.shape[1] * attrs.groups
        need(channels == source.channels, f"weight must have {source.channels} input channels, not {channels}", call)
        kernel = (weights.shape[2], weights.shape[3])
        own = four(attrs.padding, call)
        window = Window(kernel, pair(attrs.strides, call), pair(attrs.dilation, call))
        window = with_padding(window, padding, value, own, 0, call)
        target = target_of(source, window, weights.shape[0], call)
        ohwi = np.ascontiguousarray(weights.transpose(0, 2, 3, 1))
        scale = self._scale(stage, weights.shape[0], call)
        return ConvKernel(source, target, window, ohwi, scale, added, groups=attrs.groups), param

    def _dense(self, call: Call, stage: Stage, added: AddStage | MulStage | None) -> tuple[ConvKernel, int]:
        need(call.attrs.out_dtype == "int32", f"out_dtype must be int32, not {call.attrs.out_dtype}", call)
        data = call.args[0]
        weights = self._constant(call.args[1], "weight", "int8", 2)
        units, inputs = weights.shape
        flattened = self._flattens(data)
        if isinstance(data, Call) and flattened:
            self._check_flatten(data)
            data = data.args[0]
        param = self._param(data, call)
        source = self._image(self.composite.params[param])
        rank = len(self._shape(param))
        if not flattened and rank < 4:
            # One product for each row, of which a vector has one.
            need(inputs == source.channels, f"weight must have {source.channels} inputs, not {inputs}", call)
            target, ohwi = Image(source.height, source.width, units), weights.reshape(units, 1, 1, inputs)
            return ConvKernel(
                source, target, Window((1, 1)), ohwi, self._scale(stage, units, call, rank - 1), added
            ), param
        size = source.pixels * source.channels
        need(inputs == size, f"weight must have {size} inputs, not {inputs}", call)
        if rank < 4:  # channels come last in its order of elements, too
            ohwi = weights.reshape(units, source.height, source.width, source.channels)
        else:
            chw = weights.reshape(units, source.channels, source.height, source.width)
            ohwi = np.ascontiguousarray(chw.transpose(0, 2, 3, 1))
        window = Window((source.height, source.width))
        return ConvKernel(source, Image(1, 1, units), window, ohwi, self._scale(stage, units, call), added), param

    def _flattens(self, data: Expr) -> bool:
        """Whether a dense layer reads a whole tensor as one vector."""
        return isinstance(data, Call) and self._name(data) in ("nn.batch_flatten", "reshape")

    def _check_flatten(self, call: Call) -> None:
        if self._name(call) == "nn.batch_flatten":
            return
        image = self._image(self.composite.params[self._param(call.args[0], call)])
        size = image.pixels * image.channels
        shape = tuple(call.attrs.newshape)
        need(shape in ((1, size), (1, -1), (-1, size)), f"reshape must be to (1, {size}), not {shape}", call)

    def _pool(self, call: Call, kind: PoolKind, stage: Stage | None) -> Matched:
        attrs = call.attrs
        need(attrs.layout == "NCHW", f"layout must be NCHW, not {attrs.layout}", call)
        param, source, padding, value = self._padded(call.args[0])
        window = Window(pair(attrs.pool_size, call), pair(attrs.strides, call), pair(dilation_of(attrs), call))
        fill = INT8_MIN if kind is PoolKind.MAX else 0
        window = with_padding(window, padding, value, four(attrs.padding, call), fill, call)
        up = bool(getattr(attrs, "ceil_mode", False))
        target = target_of(source, window, source.channels, call, up)
        if up:
            window = cover(window, source, target, fill, call)
        scale = None if stage is None else self._scale(stage, source.channels, call)
        kernel = PoolKernel(source, target, window, kind, scale)
        return Matched(kernel, (param,), (1, target.channels, target.height, target.width))
