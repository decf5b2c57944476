"""Gradients of contractions, transforms and samplings, and of operators whose sizes are values, to the second order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Expr
from relay_hw.op import contraction, counting, patches, region_align, resample, sampling, selection, signal
from relay_hw.op.counting import GramAttrs, TreeAttrs
from relay_hw.op.patches import DeformAttrs, PatchAttrs
from relay_hw.op.region_align import RoiAlignAttrs
from relay_hw.op.resample import ResizeAttrs
from relay_hw.op.resize import Resize2DAttrs
from relay_hw.transform import gradient
from tests.relay_hw.op.gradient_checks import check

RNG = np.random.default_rng(5)


def real(*shape: int) -> np.ndarray:
    """Distinct numbers of both signs, away from 0 and from each other."""
    count = int(np.prod(shape))
    return (RNG.permutation(np.linspace(0.3, 2, count)) * RNG.choice([-1.0, 1.0], count)).reshape(shape)


def i64(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def scalar(value: int) -> np.ndarray:
    return np.array(value, np.int64)


Case = tuple[str, Callable[..., Expr], tuple[Any, ...]]
dynamic = op.dynamic


def einsum(equation: str) -> Callable[..., Expr]:
    return lambda *parts: op.einsum(list(parts), equation)


def cumulative(*rest: Any) -> Callable[..., Expr]:
    return lambda x, axis: contraction.cumulative(x, axis, *rest)


def reduced(kind: str, is_kept: bool) -> Callable[..., Expr]:
    return lambda x, axes: contraction.reduce(x, axes, kind, is_kept)


def resized(roi: Any, wanted: Any, *attrs: Any, **more: Any) -> Callable[..., Expr]:
    """Regions, scales and sizes are places, which have no derivative here."""
    return lambda x: resample.resize(x, relay.Constant(roi), relay.Constant(wanted), ResizeAttrs(*attrs, **more))


def sampled(*attrs: Any) -> Callable[..., Expr]:
    return lambda x, grid: sampling.grid_sample(x, grid, *attrs)


ZEROS = np.array([[0.5, 0.0, 2.0, 0.0], [0.0, 1.5, -1.0, 0.7]])
NO_ROI = np.zeros(0)
GRID = np.linspace(-1.37, 1.41, 6)[[3, 0, 5, 1, 2, 4]].reshape(1, 2, 1, 3)
ROIS = np.array([[0.3, 0.2, 2.6, 2.9], [1.1, -0.4, 3.7, 2.2], [0.2, 0.1, 1.3, 1.2]])
GRAMS = GramAttrs(least=1, most=2, starts=(0, 2), places=(0, 1, 3, 2), pool=(2, 3, 2, 3, 1, 3))
TREES = TreeAttrs(1, "sum", (0,), (0, 0), (0, 0), (1, 0), (0, 1), (1, 2), (1, 1), (), (0, 0, 0))

EINSUMS: list[Case] = [
    ("matrix product", einsum("ij,jk->ik"), (real(2, 3), real(3, 2))),
    ("three factors", einsum("ab,bc,cd"), (real(2, 2), real(2, 3), real(3, 2))),
    ("a sum", einsum("ij->"), (real(2, 3),)),
    ("a diagonal", einsum("ii->i"), (real(3, 3),)),
    ("a trace", einsum("iij->j"), (real(2, 2, 3),)),
    ("a free axis", einsum("ij,k->i"), (real(2, 3), real(2))),
    ("twice", lambda x: op.einsum([x, x], "ij,ij->i"), (real(2, 3),)),
    ("dots", einsum("...ij,...jk"), (real(2, 2, 3), real(3, 2))),
    ("a repeated axis", einsum("ij,ij->ij"), (real(2, 1), real(2, 3))),
    ("of a tuple", lambda t: op.einsum(t, "i,j->ij"), ((real(2), real(3)),)),
]
SCANS: list[Case] = [
    ("cumprod", lambda x: op.cumprod(x, 1), (real(2, 4),)),
    ("cumprod with zeros", lambda x: op.cumprod(x, -1), (ZEROS,)),
    ("cumprod exclusive", lambda x: op.cumprod(x, 0, exclusive=True), (ZEROS,)),
    ("cumprod flat", op.cumprod, (real(2, 3),)),
    ("cumulative sum", cumulative("sum", True, True), (real(2, 3), scalar(-1))),
    ("cumulative product", cumulative("prod", False, True), (ZEROS, scalar(1))),
    ("cumulative product exclusive", cumulative("prod", True, False), (real(3, 2), i64(0))),
    *((f"reduce {kind} {kept}", reduced(kind, kept), (real(2, 3, 2), i64(0, -1)))
      for kind in ("sum", "mean", "max", "min", "logsumexp") for kept in (True, False)),
    ("reduce prod", reduced("prod", False), (ZEROS, i64(1))),
    ("reduce prod of all", reduced("prod", True), (real(2, 3), i64(0, 1))),
    ("det", contraction.det, (real(2, 3, 3),)),
    ("det of a singular matrix", contraction.det, (np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]]),)),
    ("det of one number", contraction.det, (real(2, 1, 1),)),
]  # fmt: skip
BOXES = np.array([[0.1, 0.2, 0.9, 0.8], [0.0, 0.3, 1.2, 1.0]])
TRANSFORMS: list[Case] = [
    ("dft", op.signal.dft, (real(2, 5), real(2, 5))),
    ("inverse dft", lambda a, b: op.signal.dft(a, b, True), (real(4), real(4))),
    *((f"dft along an axis, {parts}, {settings}", lambda x, axis, s=settings: signal.dft_along(x, axis, *s),
       (real(2, size, parts), scalar(1)))
      for size, parts, settings in (
          (4, 2, (False, False, 0)), (5, 1, (False, False, 0)), (4, 1, (False, True, 0)), (5, 2, (True, False, 0)),
          (3, 2, (False, False, 5)), (5, 2, (True, False, 3)), (5, 1, (False, True, 4)), (3, 2, (True, True, 0)),
          (3, 2, (True, True, 5)), (2, 2, (True, True, 6)), (4, 2, (True, True, 3)),
      )),
    ("dft along the first axis", signal.dft_along, (real(3, 2, 2), i64(0))),
    ("stft", signal.frames, (real(1, 7, 1), scalar(2), real(3))),
    ("stft of complex numbers", lambda *x: signal.frames(*x, False), (real(2, 5, 2), scalar(1), real(4))),
]  # fmt: skip
SAMPLINGS: list[Case] = [
    *((f"grid_sample {method} {padding} {align}", sampled(method, "NCHW", padding, align), (real(1, 1, 3, 2), GRID))
      for method in ("bilinear", "nearest", "bicubic") for padding, align in
      (("zeros", True), ("border", False), ("reflection", False), ("reflection", True))),
    ("grid_sample of volumes", sampled("bilinear", "NCDHW", "zeros", True),
     (real(1, 1, 2, 3, 2), real(1, 3, 1, 2, 2) * 0.93)),
    ("grid_sample of two", sampled(), (real(2, 1, 2, 2), np.concatenate([GRID, -GRID * 0.7]))),
    ("resize by scales", resized(NO_ROI, np.array([1.7, 2.0]), (2, 3), False, "linear"), (real(1, 1, 3, 2),)),
    ("resize to sizes", resized(NO_ROI, i64(3), (0,), True, "cubic", antialias=True), (real(5, 2),)),
    ("resize nearest", resized(NO_ROI, i64(7), (1,), True, "nearest", "asymmetric"), (real(2, 3),)),
    ("resize of a region", resized(
        np.array([0.1, -0.3, 0.9, 1.2]), i64(4, 5), (0, 1), True, "linear", "tf_crop_and_resize", extrapolation=3.0
    ), (real(3, 4),)),
    ("roi_align", lambda x, b: region_align.roi_align_of(x, relay.Constant(ROIS), b, RoiAlignAttrs((2, 2), 0.9)),
     (real(2, 2, 3, 4), i64(1, 0, 1))),
    *((f"regions {layout}", lambda x, layout=layout: op.vision.roi_align(
        x, op.const(np.insert(ROIS, 0, [1, 0, 1], axis=1)), (2, 2), 0.9, -1, layout), (real(2, 2, 3, 4),))
      for layout in ("NCHW", "NHWC")),
    *((f"crops {layout}", lambda x, layout=layout: op.image.crop_and_resize(
        x, op.const(BOXES), op.const([1, 0]), (2, 3), layout, "bilinear", 2.0), (real(2, 2, 3, 4),))
      for layout in ("NCHW", "NHWC")),
    ("affine_grid", lambda x: op.image.affine_grid(x, (2, 3)), (real(2, 2, 3),)),
    ("frames of signals", lambda x, w: op.stft(x, 4, 2, 3, w, True), (real(2, 9), real(3))),
    ("deformable_conv2d", lambda *x: op.nn.deformable_conv2d(*x, (1, 1), (1, 0), deformable_groups=2),
     (real(1, 2, 3, 3), real(1, 16, 4, 2) * 0.61, real(2, 2, 2, 2))),
    ("deformable_conv2d, channels last",
     lambda *x: op.nn.deformable_conv2d(*x, data_layout="NHWC", kernel_layout="HWIO"),
     (real(1, 3, 3, 2), real(1, 2, 2, 8) * 0.61, real(2, 2, 2, 2))),
    ("sliding_window", lambda x: op.sliding_window(x, 0, (2, 2), (1, 2)), (real(3, 4),)),
    ("adv_index", lambda x, r, c: op.adv_index((x, r, c)), (real(3, 4, 2), i64([1], [-1]), i64(0, 3, 3))),
    ("strided_set", lambda x, v, b, e: op.strided_set(x, v, b, e), (real(4, 3), real(2, 1), i64(1, 2), i64(3, 3))),
    ("matrix_set_diag", lambda x, d: op.matrix_set_diag(x, d, (-1, 1)), (real(3, 4), real(3, 3))),
    ("sparse_to_dense", lambda p, v, d: op.sparse_to_dense(p, (2, 3), v, d),
     (i64([0, 1], [1, 2], [0, 1]), real(3), real())),
    ("col2im", lambda x, i, b: patches.col2im(x, i, b, PatchAttrs((1, 2), (2, 1), (1, 0, 0, 1))),
     (real(1, 2 * 4, 3 * 2), i64(4, 4), i64(2, 2))),
    ("col2im along a line", lambda x, i, b: patches.col2im(x, i, b, PatchAttrs((1,), (1,), (0, 0))),
     (real(2, 3, 4), i64(6), i64(3))),
    ("deform_conv", lambda *x: patches.deform_conv(*x, DeformAttrs((1, 1), (1, 1), (1, 0, 0, 0), 1, 2)),
     (real(1, 2, 3, 3), real(2, 2, 2, 2), real(1, 16, 3, 2) * 0.61, real(1, 8, 3, 2))),
    ("deform_conv in groups", lambda *x: patches.deform_conv(*x, DeformAttrs((2, 1), groups=2)),
     (real(2, 2, 3, 2), real(2, 1, 1, 2), real(2, 4, 2, 1) * 0.61, real(2, 2, 2, 1))),
]  # fmt: skip
VALUES: list[Case] = [
    ("arange", lambda a, b, c: op.arange(a, b, c), (np.array(0.5), np.array(2.7), np.array(0.6))),
    ("reshape", dynamic.reshape, (real(2, 3), i64(3, -1))),
    ("squeeze", dynamic.squeeze, (real(2, 1, 3), i64(1))),
    ("expand_dims", dynamic.expand_dims, (real(2, 3), scalar(-1))),
    ("broadcast_to", dynamic.broadcast_to, (real(2, 1), i64(3, 2, 2))),
    ("full", dynamic.full, (real(), i64(2, 3))),
    ("tile", dynamic.tile, (real(2, 2), i64(3, 1, 2))),
    ("strided_slice", dynamic.strided_slice, (real(5, 4), i64(-1, 1), i64(0, 9), i64(-2, 1))),
    ("strided_slice by sizes", lambda *x: dynamic.strided_slice(*x, "size"), (real(4, 2), i64(1), i64(2), i64(1))),
    ("topk", lambda x, k: dynamic.topk(x, k, 0), (real(4, 2), i64(2))),
    ("topk values", lambda x, k: dynamic.topk(x, k, -1, "values", True), (real(2, 4), i64(3))),
    ("pad", dynamic.pad, (real(3, 2), np.array([[1, 0], [-1, 2]]), real())),
    *((f"pad {mode}", lambda x, w, mode=mode: dynamic.pad(x, w, op.const(0.0, "float64"), mode),
       (real(3, 3), np.array([[1, 2], [-1, 1]]))) for mode in ("edge", "reflect", "wrap")),
    ("one_hot", lambda i, a, b, d: dynamic.one_hot(i, a, b, d, 0, "float64"),
     (i64([0, 2], [1, 5]), real(), real(), i64(3))),
    ("unique", lambda x: selection.unique_slices(x), (np.array([3.0, 1.0, 2.0]),)),
    ("unique slices", lambda x: selection.unique_slices(x, 1, False), (real(2, 3),)),
    ("unique of a vector", lambda x: op.unique(x, False), (np.array([3.0, 1.0, 2.0]),)),
    ("dynamic resize", lambda x: Call(op.get("dyn.image.resize2d"), (x, op.const([4, 2]), op.const([], "float32")),
                              Resize2DAttrs(method="cubic")), (real(1, 1, 3, 2),)),
    ("trees by features", lambda x: counting.tree_ensemble(
        x, op.const([0.1, 0.7], "float64"), op.const(np.zeros(0)), op.const([1.0, 2.0, 4.0], "float64"), TREES),
     (np.array([[0.4], [-0.9], [0.9]]),)),
    ("trees by leaves", lambda x, w: counting.tree_ensemble(
        x, op.const([0.1, 0.7], "float64"), op.const(np.zeros(0)), w, TREES),
     (np.array([[0.4], [-0.9], [0.9]]), np.array([1.0, 2.0, 4.0]))),
]  # fmt: skip
CASES = EINSUMS + SCANS + TRANSFORMS + SAMPLINGS + VALUES


@pytest.mark.parametrize(("build", "values"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_derivatives(build: Callable[..., Expr], values: tuple[Any, ...]) -> None:
    check(build, *values)


def test_weights_of_counts_get_the_counts() -> None:
    x, weights = relay.Constant(i64([2, 3, 1, 3], [2, 2, 2, 2])), relay.var("w", shape=(4,), dtype="float32")
    for mode, wanted in (("TF", [0, 0, 0, 0]), ("IDF", [2, 1, 1, 1]), ("TFIDF", [5, 2, 1, 1])):
        counted = counting.count_grams(x, weights, replace(GRAMS, mode=mode))
        new = gradient(relay.Function([weights], op.sum(counted)))
        assert relay.create_executor("debug").evaluate(new)(np.ones(4, "float32"))[1][0].tolist() == wanted


def test_what_has_no_gradient() -> None:
    x, batch = relay.var("x", shape=(1, 1, 3, 3)), relay.const(np.zeros(3, np.int64))
    sizes, rois = relay.Constant(i64(5, 4)), relay.Constant(ROIS.astype(np.float32))
    largest = region_align.roi_align_of(x, rois, batch, RoiAlignAttrs(mode="max"))
    with pytest.raises(UnsupportedError, match=r"the gradient of onnx\.roi_align must be of mode avg, not max"):
        gradient(relay.Function([x], largest))
    whole = resample.resize(x, relay.Constant(NO_ROI), sizes, ResizeAttrs((2, 3), True, policy="not_larger"))
    with pytest.raises(UnsupportedError, match=r"of onnx\.resize must be of policy stretch, not not_larger"):
        gradient(relay.Function([x], whole))
    rows, leaves = relay.var("r", shape=(2, 1)), relay.var("w", shape=(3,))
    splits, members = relay.const([0.1, 0.7]), relay.const(np.zeros(0, np.float32))
    trees = counting.tree_ensemble(rows, splits, members, leaves, replace(TREES, aggregate="max"))
    with pytest.raises(UnsupportedError, match="by its leaves must be of a sum or average, not max"):
        gradient(relay.Function([rows, leaves], trees))
