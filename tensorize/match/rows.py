"""Matches softmax and norms of rows: a row is the channels of a pixel.

In: a composite of one of these operators. Out: `RowKernel`, or the reason why this configuration cannot run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.accel.isa.rules import row_coefficients
from relay_hw.accel.isa.spec import RowKind
from relay_hw.ir.expr import Array, Call
from relay_hw.tensorize.kernel import Image, Int64, RowKernel, RowStage
from relay_hw.tensorize.match.reader import Reader
from relay_hw.tensorize.match.reading import need, var_type

_KINDS = {
    "fixed.softmax": RowKind.SOFTMAX,
    "fixed.layer_norm": RowKind.LAYER_NORM,
    "fixed.rms_norm": RowKind.RMS_NORM,
}


@dataclass(frozen=True, slots=True)
class RowReader(Reader):
    """Reads a composite of one function of rows of its only parameter; reshapes around it keep the rows."""

    def rows(self) -> tuple[RowKernel, tuple[int, ...]]:
        """The kernel and the result's shape. Raises TensorizeError."""
        last = self._call(self.composite.body)
        call = self._call(last.args[0]) if self._name(last) == "reshape" else last
        name = self._name(call)
        need(name in _KINDS, f"operator must be a function of rows, not {name}", call)
        need(self.config.cof_depth > 0, f"configuration {self.config.name} must have a row unit for {name}", call)
        data = call.args[0]
        if isinstance(data, Call) and self._name(data) == "reshape":
            data = data.args[0]
        var = self.composite.params[self._param(data, call)]
        shape, result = call.tensor_type.static_shape, last.tensor_type.static_shape
        for outer in (var_type(var).static_shape, result):
            need(len(outer) in (2, 3), f"rows must be the last axis of 2 or 3, not of {len(outer)}", call)
            need(outer[-1] == shape[-1], f"a reshape must keep rows of {shape[-1]}, not make them {outer[-1]}", call)
        image = self._image(var)
        kernel = self._softmax(call, shape, image) if _KINDS[name] is RowKind.SOFTMAX else self._norm(call, image)
        return kernel, result

    def _softmax(self, call: Call, shape: Sequence[int], image: Image) -> RowKernel:
        a = call.attrs
        table = self._constant(call.args[1], "table", "uint16", 1).astype(np.int64)
        lengths = self._constant(call.args[2], "lengths", "int32", 1)
        stage = RowStage(a.shift, a.zero_point, multiplier=a.multiplier)
        return RowKernel(image, RowKind.SOFTMAX, stage, table, table * 0, _visible(shape, lengths, bool(a.causal)))

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


def _visible(shape: Sequence[int], lengths: Array, causal: bool) -> Int64:
    """How many columns of each row take part: those that the length of its part of the first axis, and if `causal` its
    own place, let it see."""
    rows, columns = shape[-2], shape[-1]
    parts = lengths.astype(np.int64).reshape(-1, *[1] * (len(shape) - 2))
    own = np.arange(rows, dtype=np.int64) + 1 + columns - rows if causal else np.full(rows, columns, np.int64)
    seen = np.clip(np.minimum(parts, own), 0, columns)
    return np.broadcast_to(seen, tuple(shape[:-1])).reshape(-1)
