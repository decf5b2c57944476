"""Identity operators that carry annotations: compiler regions, devices, debug printing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.ir.expr import Call, Expr, Op
from relay_hw.ir.types import IncompleteType, Type, TypeVar
from relay_hw.op.base import (
    EFFECT,
    KEEPS_AXES,
    MARK,
    Attrs,
    call,
)
from relay_hw.op.elementwise import same, unary, unary_builder
from relay_hw.op.gradients.common import zeros

__all__ = ["debug", "device_copy", "on_device"]


@dataclass(frozen=True, slots=True)
class CompilerAttrs(Attrs):
    compiler: str


@dataclass(frozen=True, slots=True)
class OnDeviceAttrs(Attrs):
    virtual_device: str = ""
    constrain_result: bool = False
    constrain_body: bool = True


@dataclass(frozen=True, slots=True)
class DeviceCopyAttrs(Attrs):
    src_virtual_device: str
    dst_virtual_device: str


@dataclass(frozen=True, slots=True)
class QuantizedAttrs(Attrs):
    calibrated: bool = False
    low: float = 0.0
    high: float = 0.0


def _identity(types: Sequence[Type], attrs: AnyValue, solver: AnyValue) -> Type | None:
    return None if isinstance(types[0], (IncompleteType, TypeVar)) else types[0]


def _same(attrs: AnyValue, values: Sequence[AnyValue], result: Type) -> AnyValue:
    return values[0]


def _print(attrs: AnyValue, values: Sequence[AnyValue], result: Type) -> AnyValue:
    sys.stdout.write(f"debug: {values[0]}\n")
    return values[0]


def _adjoint(node: Call, adjoint: Expr) -> list[Expr]:
    return [adjoint]


COMPILER_BEGIN = Op(
    "annotation.compiler_begin",
    1,
    _identity,
    _same,
    attrs_type=CompilerAttrs,
    gradient=_adjoint,
    traits=MARK,
    doc="x, entering a region",
)

COMPILER_END = Op(
    "annotation.compiler_end",
    1,
    _identity,
    _same,
    attrs_type=CompilerAttrs,
    gradient=_adjoint,
    traits=MARK,
    doc="x, leaving a region",
)

ON_DEVICE = Op(
    "on_device",
    1,
    _identity,
    _same,
    attrs_type=OnDeviceAttrs,
    gradient=_adjoint,
    traits=MARK,
    doc="x, computed on a device",
)

DEVICE_COPY = Op(
    "device_copy",
    1,
    _identity,
    _same,
    attrs_type=DeviceCopyAttrs,
    gradient=_adjoint,
    traits=MARK,
    doc="x, copied to another device",
)

DEBUG = Op(
    "debug",
    1,
    _identity,
    _print,
    gradient=_adjoint,
    traits=EFFECT | KEEPS_AXES,
    doc="x, printed each time it is computed",
)


QUANTIZED = Op(
    "annotation.quantized",
    1,
    _identity,
    _same,
    attrs_type=QuantizedAttrs,
    gradient=_adjoint,
    traits=KEEPS_AXES,
    doc="x, which becomes integers; low and high: its range once calibrated",
)


def _first_adjoint(node: Call, adjoint: Expr) -> list[Expr]:
    return [adjoint, *(zeros(arg) for arg in node.args[1:])]


QUANTIZED_LAYER = Op(
    "annotation.quantized_layer",
    5,
    _identity,
    _same,
    gradient=_first_adjoint,
    traits=KEEPS_AXES,
    doc="x, made by a layer whose weight, bias with and without the zero point, and scales are chosen",
)


def compiler_begin(data: Expr, compiler: str) -> Call:
    """`data`, read by a region of `compiler`."""
    return call(COMPILER_BEGIN, (data,), CompilerAttrs(compiler))


def compiler_end(data: Expr, compiler: str) -> Call:
    """`data`, a result of a region of `compiler`."""
    return call(COMPILER_END, (data,), CompilerAttrs(compiler))


def on_device(data: Expr, device: object, constrain_result: bool = False, constrain_body: bool = True) -> Call:
    """`data` computed on `device` (`constrain_body`) and its value kept there (`constrain_result`)."""
    return call(ON_DEVICE, (data,), OnDeviceAttrs(str(device), constrain_result, constrain_body))


def device_copy(data: Expr, src: object, dst: object) -> Call:
    """`data` copied from device `src` to device `dst`."""
    return call(DEVICE_COPY, (data,), DeviceCopyAttrs(str(src), str(dst)))


def debug(data: Expr) -> Call:
    """`data`, printed each time it is computed: an effect, which passes keep in its place."""
    return call(DEBUG, (data,))


STOP_FUSION = unary("annotation.stop_fusion", np.copy, "x; fusion does not pass it", slope=same)
stop_fusion = unary_builder(STOP_FUSION)

OPS = (COMPILER_BEGIN, COMPILER_END, ON_DEVICE, DEVICE_COPY, DEBUG, STOP_FUSION, QUANTIZED, QUANTIZED_LAYER)
