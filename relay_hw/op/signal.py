"""Fourier transforms: Relay's dft and stft, and ONNX's with run-time sizes and axes.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.ir.expr import Call, Expr, Op, TupleGetItem
from relay_hw.ir.types import ANY, TensorType, TupleType, Type
from relay_hw.op import dynamic_elements, dynamic_shape
from relay_hw.op.base import Array, Attrs, call, const, out_type, rule, same_dim, same_dtype, show, window_size
from relay_hw.op.dynamic_shape import numbers
from relay_hw.op.gradients.accumulate import by_expansion
from relay_hw.op.gradients.common import ops, zeros
from relay_hw.op.gradients.selection import places_of, size_of

__all__ = ["dft", "stft"]


@dataclass(frozen=True, slots=True)
class DFTAttrs(Attrs):
    inverse: bool = False


@dataclass(frozen=True, slots=True)
class DynDFTAttrs(Attrs):
    """`length` 0: as many elements as the axis has."""

    inverse: bool = False
    onesided: bool = False
    length: int = 0


@dataclass(frozen=True, slots=True)
class FramesAttrs(Attrs):
    onesided: bool = True


@rule("dft", 2)
def _dft_type(attrs: DFTAttrs, real: TensorType, imaginary: TensorType) -> Type:
    same_dtype("dft", real, imaginary)
    if real.rank < 1 or real.rank != imaginary.rank:
        raise TypeCheckError(f"dft must get two tensors of one shape, not {real} and {imaginary}")
    return TupleType([real, imaginary])


def _dft(attrs: DFTAttrs, values: Sequence[Array], result: Type) -> tuple[Array, ...]:
    dtype = np.asarray(values[0]).dtype
    wide = np.asarray(values[0]).astype(np.float64) + 1j * np.asarray(values[1]).astype(np.float64)
    found = np.fft.ifft(wide) if attrs.inverse else np.fft.fft(wide)
    return np.real(found).astype(dtype), np.imag(found).astype(dtype)


def _dft_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The transposed transform is the inverse one but for a factor."""
    real, inverse = call.args[0], call.attrs.inverse
    parts = dft(TupleGetItem(adjoint, 0), TupleGetItem(adjoint, 1), not inverse)
    return tuple(_scaled(TupleGetItem(parts, at), size_of(real, -1), inverse) for at in (0, 1))


def _scaled(value: Expr, count: Expr, is_forward: bool) -> Expr:
    """The factor between a transform and the transposed inverse one."""
    factor = ops().cast_like(count, value)
    return value / factor if is_forward else value * factor


DFT = Op(
    "dft",
    2,
    _dft_type,
    _dft,
    attrs_type=DFTAttrs,
    gradient=_dft_gradient,
    doc="discrete Fourier transform along the last axis",
)


def dft(re_data: Expr, im_data: Expr, inverse: bool = False) -> Call:
    """(real, imaginary) parts of the transform of the last axis."""
    return call(DFT, (re_data, im_data), DFTAttrs(inverse))


@rule("onnx.dft", 2)
def _dyn_dft_type(attrs: DynDFTAttrs, x: TensorType, axis: TensorType) -> Type:
    if x.rank < 2 or (isinstance(x.shape[-1], int) and x.shape[-1] not in (1, 2)):
        raise TypeCheckError(f"the last axis of onnx.dft must hold the real part, or both parts, not be that of {x}")
    parts = 1 if attrs.inverse and attrs.onesided else 2
    return TensorType((*[ANY] * (x.rank - 1), parts), x.dtype)


def _complex(x: Array) -> Array:
    """Complex numbers of the data's own precision, at least that of float32."""
    dtype = np.result_type(x.dtype, np.complex64)
    real = x[..., 0].astype(dtype)
    return real + x[..., 1].astype(dtype) * dtype.type(1j) if x.shape[-1] == 2 else real


def _parts(x: Array, dtype: str) -> Array:
    return np.stack([np.real(x), np.imag(x)], axis=-1).astype(dtype)


def _dyn_dft(attrs: DynDFTAttrs, values: Sequence[Array], result: Type) -> Array:
    x, axis, dtype = np.asarray(values[0]), numbers(values[1])[0], out_type(result).dtype
    if not -x.ndim <= axis < x.ndim or axis % x.ndim == x.ndim - 1:
        raise EvalError(f"the axis of onnx.dft must be one of {x.ndim} but the last, not {axis}")
    wide, axis = _complex(x), axis % x.ndim
    length = attrs.length or None
    if attrs.inverse and attrs.onesided:
        return np.fft.irfft(wide, length, axis)[..., None].astype(dtype)
    found = (np.fft.ifft if attrs.inverse else np.fft.fft)(wide, length, axis)
    if attrs.onesided:
        found = np.take(found, np.arange(found.shape[axis] // 2 + 1), axis)
    return _parts(found, dtype)


def _dyn_dft_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The other transform of the adjoint, brought to the length of the data; halves stand for both of their sides."""
    (x, axis), attrs, op = call.args, call.attrs, ops()
    rank = x.tensor_type.rank
    place = op.floor_mod(op.reshape(op.cast(axis, "int64"), ()), op.const(rank, "int64"))
    have = op.take(op.shape_of(x, "int64"), place, 0)
    is_half = attrs.inverse and attrs.onesided
    length = op.const(attrs.length, "int64") if attrs.length else have
    if is_half and not attrs.length:
        length = op.const(2, "int64") * (have - op.const(1, "int64"))
    line = _Line(place, rank)
    g = line.fitted(adjoint, length) if attrs.onesided and not attrs.inverse else adjoint
    found = _scaled(dft_along(g, axis, not attrs.inverse), length, attrs.inverse)
    if is_half:
        # All frequencies but the first, and the last of an even number, stand for two.
        frequency = places_of(length)
        twice = op.logical_and(
            op.greater(frequency, op.const(0, "int64")),
            op.not_equal(op.const(2, "int64") * frequency, length),
        )
        half = op.floor_divide(length, op.const(2, "int64")) + op.const(1, "int64")
        shares = op.cast_like(op.cast(twice, "int64") + op.const(1, "int64"), found)
        found = line.fitted(found * line.spread(shares), half)
    found = line.fitted(found, have)
    if x.tensor_type.shape[-1] != 2:
        found = _Line(op.const(rank - 1, "int64"), rank).fitted(found, size_of(x, -1))
    return op.reshape_like(found, x), zeros(axis)


@dataclass(frozen=True, slots=True)
class _Line:
    """An axis that is known at run time, of `rank`."""

    place: Expr
    rank: int

    def fitted(self, value: Expr, count: Expr) -> Expr:
        """`value` cut off, or filled up with zeros, to `count` along the axis."""
        op = ops()
        shape = op.shape_of(value, "int64")
        wanted = op.where(self._is_it(), count, shape)
        zero = op.zeros((self.rank,), "int64")
        cut = dynamic_elements.strided_slice(value, zero, wanted, op.ones((self.rank,), "int64"))
        widths = op.stack([zero, wanted - op.shape_of(cut, "int64")], 1)
        return dynamic_elements.pad(cut, widths, op.cast_like(op.const(0.0), value))

    def spread(self, vector: Expr) -> Expr:
        """A vector along the axis."""
        op = ops()
        sizes = op.where(self._is_it(), op.ndarray_size(vector, "int64"), op.ones((self.rank,), "int64"))
        return dynamic_shape.reshape(vector, sizes)

    def _is_it(self) -> Expr:
        return ops().equal(const(np.arange(self.rank, dtype=np.int64)), self.place)


DYN_DFT = Op(
    "onnx.dft",
    2,
    _dyn_dft_type,
    _dyn_dft,
    attrs_type=DynDFTAttrs,
    gradient=_dyn_dft_gradient,
    doc="Fourier transform along a run-time axis",
)


def dft_along(data: Expr, axis: Expr, inverse: bool = False, onesided: bool = False, length: int = 0) -> Call:
    """The transform of `data`, whose last axis holds real or real and imaginary parts, along `axis`."""
    return call(DYN_DFT, (data, axis), DynDFTAttrs(inverse, onesided, length))


@rule("onnx.stft", 3)
def _frames_type(attrs: FramesAttrs, x: TensorType, step: TensorType, window: TensorType) -> Type:
    if x.rank != 3 or window.rank != 1:
        raise TypeCheckError(f"onnx.stft must get (N, samples, parts) and a window, not {show(x)} and {show(window)}")
    return TensorType((x.shape[0], ANY, ANY, 2), x.dtype)


def _frames(attrs: FramesAttrs, values: Sequence[Array], result: Type) -> Array:
    x, step, window = _complex(np.asarray(values[0])), numbers(values[1])[0], np.asarray(values[2])
    length = len(window)
    if step < 1 or length > x.shape[1]:
        raise EvalError(f"frames of onnx.stft must fit {x.shape[1]} samples, not be {length} long and {step} apart")
    starts = np.arange((x.shape[1] - length) // step + 1) * step
    frames = x[:, starts[:, None] + np.arange(length)] * window
    found = np.fft.fft(frames, axis=2)
    return _parts(found[:, :, : length // 2 + 1] if attrs.onesided else found, out_type(result).dtype)


def _frames_expr(attrs: FramesAttrs, x: Expr, step: Expr, window: Expr) -> Expr:
    """The frames, taken from the signal, then their transforms."""
    op = ops()
    by = op.reshape(op.cast(step, "int64"), ())
    length = size_of(window, 0)
    count = op.floor_divide(size_of(x, 1) - length, by) + op.const(1, "int64")
    places = op.expand_dims(places_of(count) * by, 1) + op.expand_dims(places_of(length), 0)
    frames = op.take(x, places, 1) * op.expand_dims(window, 1)
    return dft_along(frames, op.const(2, "int64"), False, attrs.onesided)


FRAMES = Op(
    "onnx.stft",
    3,
    _frames_type,
    _frames,
    attrs_type=FramesAttrs,
    gradient=by_expansion(_frames_expr),
    doc="Fourier transforms of frames of a signal",
)


def frames(data: Expr, step: Expr, window: Expr, onesided: bool = True) -> Call:
    """Transforms of frames of `data`, `step` apart, each multiplied by `window`."""
    return call(FRAMES, (data, step, window), FramesAttrs(onesided))


@dataclass(frozen=True, slots=True)
class STFTAttrs(Attrs):
    n_fft: int
    hop_length: int
    win_length: int
    normalized: bool = False
    onesided: bool = True


def _frequencies(attrs: STFTAttrs) -> int:
    """How many there are: of real signals half of them say it all."""
    return attrs.n_fft // 2 + 1 if attrs.onesided else attrs.n_fft


@rule("stft", 2)
def _stft_type(attrs: STFTAttrs, x: TensorType, window: TensorType) -> Type:
    if x.rank != 2 or window.rank != 1 or not same_dim(window.shape[0], attrs.win_length):
        raise TypeCheckError(
            f"stft must get signals (N, samples) and a window of {attrs.win_length}, not {show(x)} and {show(window)}"
        )
    if not 0 < attrs.win_length <= attrs.n_fft or attrs.hop_length < 1:
        raise TypeCheckError(
            f"win_length of stft must be in [1, n_fft] and hop_length at least 1, "
            f"not {attrs.win_length} of {attrs.n_fft} and {attrs.hop_length}"
        )
    if isinstance(x.shape[1], int) and x.shape[1] < attrs.n_fft:
        raise TypeCheckError(f"the signals of stft must have {attrs.n_fft} samples or more, not {x.shape[1]}")
    count = _frequencies(attrs)
    return TensorType((x.shape[0], count, window_size(x.shape[1], attrs.n_fft, attrs.hop_length, 0, 0), 2), x.dtype)


def _stft(attrs: STFTAttrs, values: Sequence[Array], result: Type) -> Array:
    x, window = np.asarray(values[0]).astype(np.float64), np.asarray(values[1]).astype(np.float64)
    starts = np.arange((x.shape[1] - attrs.n_fft) // attrs.hop_length + 1) * attrs.hop_length
    frames_of = x[:, starts[:, None] + np.arange(attrs.win_length)] * window
    count = _frequencies(attrs)
    # Frequencies count in parts of the window, which may be shorter than the transform.
    turns = np.outer(np.arange(attrs.win_length), np.arange(count)) / attrs.win_length
    found = np.swapaxes(frames_of @ np.exp(-2j * np.pi * turns), 1, 2)
    return _parts(found / np.sqrt(attrs.n_fft) if attrs.normalized else found, out_type(result).dtype)


def _stft_expr(attrs: STFTAttrs, x: Expr, window: Expr) -> Expr:
    """The frames, taken from the signals, times cosines and sines."""
    op, dtype, count = ops(), x.tensor_type.dtype, _frequencies(attrs)
    steps, by = op.const(attrs.n_fft, "int64"), op.const(attrs.hop_length, "int64")
    frames_there = op.floor_divide(size_of(x, 1) - steps, by) + op.const(1, "int64")
    inner = const(np.arange(attrs.win_length))
    places = op.expand_dims(places_of(frames_there) * by, 1) + op.expand_dims(inner, 0)
    turns = 2 * np.pi * np.outer(np.arange(count), np.arange(attrs.win_length)) / attrs.win_length
    scale = 1 / np.sqrt(attrs.n_fft) if attrs.normalized else 1.0
    waves = const((np.stack([np.cos(turns), -np.sin(turns)], axis=2) * scale).astype(dtype))
    return op.einsum([op.take(x, places, 1) * op.cast_like(window, x), waves], "nfk,rkp->nrfp")


STFT = Op(
    "stft",
    2,
    _stft_type,
    _stft,
    attrs_type=STFTAttrs,
    gradient=by_expansion(_stft_expr),
    doc="Fourier transforms of frames of signals",
)


def stft(
    data: Expr,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Expr | None = None,
    normalized: bool = False,
    onesided: bool = True,
) -> Call:
    """Transforms of frames of the signals `data` (N, samples): (N, frequencies, frames, real and imaginary part).

    Frames are `hop_length` apart, a quarter of `n_fft` where none is given; the window is one of ones then.
    """
    length = n_fft if win_length is None else win_length
    step = n_fft // 4 if hop_length is None else hop_length
    weights = const(np.ones(length, np.float32)) if window is None else window
    return call(STFT, (data, weights), STFTAttrs(n_fft, step, length, normalized, onesided))


OPS = (DFT, DYN_DFT, FRAMES, STFT)
