"""Matches softmax and norms of rows: a row is the channels of a pixel.

In: a composite of one of these operators. Out: `RowKernel`, or the reason why this configuration cannot run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.accel.isa.config import EXPONENTIALS, AccelConfig
from relay_hw.accel.isa.rules import row_coefficients
from relay_hw.accel.isa.spec import RowKind
from relay_hw.ir.expr import Array, Call, Constant, Expr
from relay_hw.tensorize.kernel import Image, RowKernel
from relay_hw.tensorize.layout import row_records
from relay_hw.tensorize.match.reader import Reader
from relay_hw.tensorize.match.reading import need, var_type
from relay_hw.tensorize.stages import Int64, RowStage

_KINDS = {
    "fixed.softmax": RowKind.SOFTMAX,
    "fixed.layer_norm": RowKind.LAYER_NORM,
    "fixed.rms_norm": RowKind.RMS_NORM,
}


@dataclass(frozen=True, slots=True)
class RowReader(Reader):
    """Reads a composite of one function of rows of a parameter; reshapes around it keep the rows."""

    def rows(self) -> tuple[RowKernel, tuple[int, ...]]:
        """The kernel and the result's shape. Raises TensorizeError."""
        last, call = self._calls()
        name = self._name(call)
        need(name in _KINDS, f"operator must be a function of rows, not {name}", call)
        need(self.config.cof_depth > 0, f"configuration {self.config.name} must have a row unit for {name}", call)
        var = self.composite.params[self._param(self._data(call), call)]
        shape, result = call.tensor_type.static_shape, last.tensor_type.static_shape
        for outer in (var_type(var).static_shape, result):
            need(len(outer) in (2, 3), f"rows must be the last axis of 2 or 3, not of {len(outer)}", call)
            need(outer[-1] == shape[-1], f"a reshape must keep rows of {shape[-1]}, not make them {outer[-1]}", call)
        image = self._image(var)
        kernel = self._softmax(call, shape, image) if _KINDS[name] is RowKind.SOFTMAX else self._norm(call, image)
        return kernel, result

    def params(self) -> tuple[int, ...]:
        """The parameters that `rows` reads: data, and what bounds their columns where something does."""
        _, call = self._calls()
        args = (self._data(call), call.args[2])
        return tuple(self._param(arg, call) for arg in args if not isinstance(arg, Constant))

    def _calls(self) -> tuple[Call, Call]:
        """The last call of the composite, and that of the function of rows, which may be the same."""
        last = self._call(self.composite.body)
        return last, self._call(last.args[0]) if self._name(last) == "reshape" else last

    def _data(self, call: Call) -> Expr:
        data = call.args[0]
        return data.args[0] if isinstance(data, Call) and self._name(data) == "reshape" else data

    def _softmax(self, call: Call, shape: Sequence[int], image: Image) -> RowKernel:
        a, given = call.attrs, call.args[2]
        table = self._constant(call.args[1], "table", "uint16", 1).astype(np.int64)
        bound = () if isinstance(given, Constant) else self._bound(given, call)
        lengths = np.full(1, shape[-1]) if bound else self._constant(given, "lengths", "int32", 1)
        stage = RowStage(a.shift, a.zero_point, multiplier=a.multiplier)
        visible = _visible(shape, lengths, bool(a.causal))
        return RowKernel(image, RowKind.SOFTMAX, stage, table, table * 0, visible, bound)

    def _bound(self, lengths: Expr, call: Call) -> tuple[Image, Image]:
        """The inputs of a softmax whose length is a parameter: an entry of coefficients, and the exponentials."""
        config = self.config
        shape, dtype = lengths.tensor_type.static_shape, lengths.tensor_type.dtype
        wanted = (1, config.cof_bytes)
        sentence = f"lengths that are no constant must be int8 of {wanted}, not {dtype} of {shape}"
        need(dtype == "int8" and shape == wanted, sentence, call)
        needed = row_coefficients(config, {"kind": RowKind.SOFTMAX, "bounded": 1})
        sentence = f"exponentials and a length must fit the {config.cof_depth} entries of coefficients of {config.name}"
        need(needed <= config.cof_depth, f"{sentence}, not need {needed}", call)
        return Image(1, 1, config.cof_bytes), Image(1, 1, EXPONENTIALS * config.cof_bytes)

    def _norm(self, call: Call, image: Image) -> RowKernel:
        a, kind, config, columns = call.attrs, _KINDS[self._name(call)], self.config, image.channels
        gain, bias = (
            self._constant(arg, what, dtype, 1).astype(np.int64)
            for arg, what, dtype in zip(call.args[1:], ("gain", "bias"), ("int16", "int32"), strict=True)
        )
        needed = row_coefficients(config, {"kind": kind, "columns": columns})
        sentence = f"columns of a norm must fit the {config.cof_depth} entries of coefficients of {config.name}"
        need(needed <= config.cof_depth, f"{sentence}, not need {needed}", call)
        zero = a.input_zero_point if kind is RowKind.RMS_NORM else 0
        stage = RowStage(a.shift, a.zero_point, epsilon=a.epsilon, input_zero=zero)
        return RowKernel(image, kind, stage, gain, bias, np.full(image.pixels, columns, np.int64))


def bound_constants(kernel: RowKernel, config: AccelConfig) -> tuple[Array, ...]:
    """The tensor of exponentials of a softmax that is bounded; of other functions none."""
    if not kernel.bound:
        return ()
    return (np.frombuffer(row_records(kernel, config), np.int8).reshape(1, -1),)


def _visible(shape: Sequence[int], lengths: Array, causal: bool) -> Int64:
    """How many columns of each row take part: those that the length of its part of the first axis, and if `causal` its
    own place, let it see."""
    rows, columns = shape[-2], shape[-1]
    parts = lengths.astype(np.int64).reshape(-1, *[1] * (len(shape) - 2))
    own = np.arange(rows, dtype=np.int64) + 1 + columns - rows if causal else np.full(rows, columns, np.int64)
    seen = np.clip(np.minimum(parts, own), 0, columns)
    return np.broadcast_to(seen, tuple(shape[:-1])).reshape(-1)
