"""Reads what composites have in common: operands, constants, padding and the numbers of the output stage.

In: one composite function. Out: what its calls say, or TensorizeError with the reason and the place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.records import MAX_SHIFT
from relay_hw.accel.isa.spec import Rounding
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Array, Attrs, Call, Constant, Expr, Function, Op, Var
from relay_hw.support.names import one_of
from relay_hw.tensorize.kernel import Image
from relay_hw.tensorize.layout import image_of
from relay_hw.tensorize.match.reading import INT8_MAX, INT8_MIN, Stage, need, per_channel, var_type
from relay_hw.tensorize.stages import AddStage, MulStage, Requantize, Table

ROUNDINGS = {rounding.name.lower(): rounding for rounding in Rounding}


@dataclass(frozen=True, slots=True)
class Reader:
    """Walks the body of one composite from its result to its parameters."""

    composite: Function
    config: AccelConfig

    def _requantize(self, expr: Expr) -> tuple[Stage, Expr]:
        expr, table = self._through_table(expr)
        call = self._call(expr, "fixed.requantize")
        return Stage(call.attrs, call, table), call.args[0]

    def _through_table(self, expr: Expr) -> tuple[Expr, Table | None]:
        """What goes through a table, and the table; an expression without one as it is."""
        if not isinstance(expr, Call) or self._name(expr) != "fixed.table":
            return expr, None
        sentence = f"configuration {self.config.name} must have tables for fixed.table, not none"
        need(self.config.tables > 0, sentence, expr)
        return expr.args[0], self._constant(expr.args[1], "table", "int8", 1).tobytes()

    def _scale(self, stage: Stage, channels: int, at: Expr, axis: int = 1) -> Requantize:
        attrs, call = stage.attrs, stage.call
        need(attrs.axis == axis, f"requantize axis must be {axis}, not {attrs.axis}", call)
        bias = self._constant(call.args[1], "bias", "int32", 1)
        need(bias.size == channels, f"bias must have {channels} values, not {bias.size}", call)
        multiplier, shift = (per_channel(values, channels, call) for values in (attrs.multiplier, attrs.shift))
        self._check_multipliers(multiplier.tolist(), call)
        need(shift.min() >= 0 and shift.max() <= MAX_SHIFT, f"shift must be 0 to {MAX_SHIFT}, not {shift.max()}", call)
        rounding, zero, low, high = self._bounds(attrs, call)
        return Requantize(bias.astype(np.int64), multiplier, shift, zero, rounding, low, high, stage.table)

    def _add_stage(self, call: Call, swapped: bool, table: Table | None = None) -> AddStage:
        a = call.attrs
        self._check_multipliers((a.y_multiplier, a.r_multiplier), call)
        need(0 <= a.shift <= MAX_SHIFT, f"shift must be 0 to {MAX_SHIFT}, not {a.shift}", call)
        for zero in (a.y_zero_point, a.r_zero_point):
            need(INT8_MIN <= zero <= INT8_MAX, f"zero point must fit int8, not {zero}", call)
        rounding, zero_point, low, high = self._bounds(a, call)
        y, r = (a.y_multiplier, a.y_zero_point), (a.r_multiplier, a.r_zero_point)
        if swapped:
            y, r = r, y
        return AddStage(y[0], r[0], a.shift, y[1], r[1], zero_point, rounding, low, high, table)

    def _mul_stage(self, call: Call, swapped: bool, table: Table | None = None) -> MulStage:
        a = call.attrs
        self._check_multipliers((a.multiplier,), call)
        need(0 <= a.shift <= MAX_SHIFT, f"shift must be 0 to {MAX_SHIFT}, not {a.shift}", call)
        rounding, zero_point, low, high = self._bounds(a, call)
        y, r = (a.r_zero_point, a.y_zero_point) if swapped else (a.y_zero_point, a.r_zero_point)
        return MulStage(a.multiplier, a.shift, y, r, zero_point, rounding, low, high, table)

    def _check_multipliers(self, values: Sequence[int], at: Expr) -> None:
        bits = self.config.multiplier_bits
        for value in values:
            sentence = f"multiplier must fit the {bits} bits of configuration {self.config.name}, not {value}"
            need(0 <= value < 1 << bits, sentence, at)

    def _bounds(self, attrs: Attrs, at: Expr) -> tuple[Rounding, int, int, int]:
        need(attrs.rounding in ROUNDINGS, one_of("rounding", ROUNDINGS, attrs.rounding), at)
        zero, low, high = int(attrs.zero_point), int(attrs.a_min), int(attrs.a_max)
        need(INT8_MIN <= zero <= INT8_MAX, f"zero point must fit int8, not {zero}", at)
        need(INT8_MIN <= low <= high <= INT8_MAX, f"clip bounds must be ordered int8 values, not {low} and {high}", at)
        return ROUNDINGS[attrs.rounding], zero, low, high

    def _padded(self, expr: Expr) -> tuple[int, Image, tuple[int, int, int, int], int]:
        """Parameter, its size, explicit padding in front of the window and its value."""
        if not isinstance(expr, Call):
            param = self._param(expr, self.composite)
            return param, self._map(self.composite.params[param]), (0, 0, 0, 0), 0
        pad = self._call(expr, "nn.pad")
        mode = getattr(pad.attrs, "pad_mode", "constant")
        need(mode == "constant", f"pad_mode must be constant, not {mode}", pad)
        widths = tuple(tuple(pair) for pair in pad.attrs.pad_width)
        need(len(widths) == 4, f"pad_width must have 4 axes, not {len(widths)}", pad)
        need(widths[:2] == ((0, 0), (0, 0)), "padding of batch and channels must be 0", pad)
        value = self._pad_value(pad)
        need(INT8_MIN <= value <= INT8_MAX, f"pad value must fit int8, not {value}", pad)
        param = self._param(pad.args[0], pad)
        padding = (widths[2][0], widths[3][0], widths[2][1], widths[3][1])
        need(min(padding) >= 0, f"padding must not be negative, not {min(padding)}", pad)
        return param, self._map(self.composite.params[param]), padding, value

    def _pad_value(self, pad: Call) -> int:
        if len(pad.args) < 2:
            return int(getattr(pad.attrs, "pad_value", 0))
        value = pad.args[1]
        if not isinstance(value, Constant) or value.data.size != 1:
            raise TensorizeError("pad value must be a constant scalar", pad.span)
        number = value.data.reshape(-1)[0]
        need(float(number) == int(number), f"pad value must be an integer, not {number}", pad)
        return int(number)

    def _call(self, expr: Expr, name: str | None = None) -> Call:
        if not isinstance(expr, Call):
            raise TensorizeError(f"composite must hold a call of {name or 'an operator'} here", expr.span)
        found = self._name(expr)
        need(name is None or found == name, f"operator must be {name}, not {found}", expr)
        return expr

    def _name(self, call: Call) -> str:
        if not isinstance(call.op, Op):
            raise TensorizeError(f"composite must call operators, not {type(call.op).__name__}", call.span)
        return call.op.name

    def _param(self, expr: Expr, at: Expr) -> int:
        for number, var in enumerate(self.composite.params):
            if var is expr:
                return number
        raise TensorizeError("operand must be a parameter of the composite", expr.span or at.span)

    def _image(self, var: Var) -> Image:
        ty = var_type(var)
        need(ty.dtype == "int8", f"activation must be int8, not {ty.dtype}", var)
        shape = ty.static_shape
        need(len(shape) != 4 or shape[0] == 1, f"batch must be 1, not {shape[:1]}", var)
        return image_of(shape)

    def _map(self, var: Var) -> Image:
        """An image with axes of its own for rows and columns."""
        shape = var_type(var).static_shape
        need(len(shape) == 4, f"activation shape must be (1, C, H, W), not {shape}", var)
        return self._image(var)

    def _constant(self, expr: Expr, what: str, dtype: str, rank: int) -> Array:
        if not isinstance(expr, Constant):
            raise TensorizeError(f"{what} must be a constant, not {type(expr).__name__}", expr.span)
        data = expr.data
        need(str(data.dtype) == dtype, f"{what} must be {dtype}, not {data.dtype}", expr)
        need(data.ndim == rank, f"{what} must have {rank} axes, not {data.ndim}", expr)
        return data
