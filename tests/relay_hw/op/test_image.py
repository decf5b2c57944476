"""Operators on images: sampling, regions, boxes, columns; against plain loops and against what must hold of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.interp import evaluate
from relay_hw.ir.types import TensorType
from relay_hw.op.boxes import boxes_kept, overlap
from relay_hw.op.patches import DeformAttrs, PatchAttrs
from relay_hw.op.region_align import RoiAlignAttrs, roi_align_of
from relay_hw.op.resample import COORDINATES, METHODS, Axis, ResizeAttrs, resize, resize_matrix

RNG = np.random.default_rng(0)


def run(build: Any, *values: Any) -> Any:
    arrays = [np.asarray(value) for value in values]
    params = [relay.var(f"x{n}", TensorType(array.shape, str(array.dtype))) for n, array in enumerate(arrays)]
    return evaluate(infer_type(relay.IRModule({"main": relay.Function(params, build(*params))})), arrays)


@given(st.sampled_from(METHODS), st.sampled_from(COORDINATES[:6]), st.integers(1, 9), st.integers(1, 20), st.booleans())
@settings(max_examples=150)
def test_weights_of_each_new_element_add_up_to_one(
    method: str, coordinates: str, size: int, count: int, antialias: bool
) -> None:
    attrs = ResizeAttrs((0,), True, method, coordinates, antialias=antialias)
    matrix, outside = resize_matrix(attrs, Axis(size, count, count / size))
    assert matrix.shape == (count, size) and not outside.any()
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-9)
    if count == size and coordinates != "tf_half_pixel_for_nn":
        np.testing.assert_allclose(matrix, np.eye(size), atol=1e-9)


def test_linear_resize_of_a_line_is_a_line() -> None:
    attrs = ResizeAttrs((1,), True, "linear", "align_corners")
    x = np.linspace(0, 1, 4, dtype=np.float32)[None]
    found = run(lambda x, r, w: resize(x, r, w, attrs), x, np.zeros(0, np.float32), np.array([9]))
    np.testing.assert_allclose(found[0], np.linspace(0, 1, 9), atol=1e-6)


def test_words_and_sizes_that_resize_refuses() -> None:
    with pytest.raises(TypeCheckError, match=r"method of onnx\.resize must be one of nearest, linear, cubic, not area"):
        run(lambda x, r, w: resize(x, r, w, ResizeAttrs((0,), True, "area")), np.zeros(3), np.zeros(0), [2])
    with pytest.raises(EvalError, match="must get a positive number for each of axes"):
        run(lambda x, r, w: resize(x, r, w, ResizeAttrs((0,), True)), np.zeros(3), np.zeros(0), [0])


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic"])
def test_a_grid_of_the_pixels_themselves_changes_nothing(method: str, rank: int, align: bool) -> None:
    sizes = (4, 5, 3)[:rank]
    x = RNG.normal(size=(2, 3, *sizes))
    lines = [np.linspace(-1, 1, n) if align else (2 * np.arange(n) + 1) / n - 1 for n in sizes]
    grid = np.stack(np.meshgrid(*lines, indexing="ij")[::-1])[None].repeat(2, 0)
    layout = "NCHW" if rank == 2 else "NCDHW"
    found = run(lambda x, g: op.image.grid_sample(x, g, method, layout, "zeros", align), x, grid)
    np.testing.assert_allclose(found, x, atol=1e-9)


@pytest.mark.parametrize(("padding", "far"), [("zeros", 0.0), ("border", 3.0)])
def test_far_outside(padding: str, far: float) -> None:
    x = np.arange(4.0).reshape(1, 1, 2, 2)
    grid = np.full((1, 2, 1, 1), 9.0)
    found = run(lambda x, g: op.image.grid_sample(x, g, "bilinear", "NCHW", padding, False), x, grid)
    assert found.item() == far


def test_grids_that_do_not_fit() -> None:
    with pytest.raises(TypeCheckError, match="must hold 2 coordinates for each image"):
        run(op.image.grid_sample, np.zeros((1, 1, 2, 2)), np.zeros((1, 3, 2, 2)))
    with pytest.raises(TypeCheckError, match=r"padding_mode of image\.grid_sample must be zeros, border or reflection"):
        grid = np.zeros((1, 2, 2, 2))
        run(lambda x, g: op.image.grid_sample(x, g, padding_mode="wrap"), np.zeros((1, 1, 2, 2)), grid)


def test_regions_of_a_constant_and_of_a_slope() -> None:
    attrs = RoiAlignAttrs((2, 3), 1.0, 2, "avg", True)
    rois, batch = np.array([[1.0, 1.0, 7.0, 5.0]]), np.array([0])
    flat = run(lambda x, r, b: roi_align_of(x, r, b, attrs), np.full((1, 1, 8, 9), 2.5), rois, batch)
    np.testing.assert_allclose(flat, 2.5)
    slope = np.broadcast_to(np.arange(9.0), (1, 1, 8, 9)).copy()
    found = run(lambda x, r, b: roi_align_of(x, r, b, attrs), slope, rois, batch)
    # Centers of three cells of width 2 from 1 to 7, half a pixel to the left.
    np.testing.assert_allclose(found[0, 0], [[1.5, 3.5, 5.5]] * 2)


def kept_by_loops(boxes: np.ndarray, scores: np.ndarray, count: int, iou: float, least: float) -> list[int]:
    kept: list[int] = []
    for at in sorted(range(len(scores)), key=lambda at: -scores[at]):
        apart = all(overlap(boxes[other], boxes[at : at + 1])[0] <= iou for other in kept)
        if scores[at] > least and len(kept) < count and apart:
            kept.append(at)
    return kept


@given(st.integers(0, 10_000), st.integers(0, 6), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=40)
def test_boxes_kept(seed: int, count: int, iou: float, least: float) -> None:
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.uniform(0, 1, (10, 2, 2)), axis=1).reshape(10, 4)
    scores = rng.permutation(10) / 10
    found = run(
        boxes_kept,
        corners[None], scores[None, None], np.int64(count), np.float64(iou), np.float64(least),
    )  # fmt: skip
    assert found.dtype == np.int64
    assert [tuple(row) for row in found] == [(0, 0, at) for at in kept_by_loops(corners, scores, count, iou, least)]


def test_columns_are_added_where_windows_meet() -> None:
    """The adjoint of cutting windows: <cut(x), c> is <x, col2im(c)>."""
    attrs = PatchAttrs((2, 1), (1, 2), (1, 0, 0, 1))
    x = RNG.normal(size=(1, 2, 5, 6))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 1)))
    windows = [
        padded[0, :, 2 * r : 2 * r + 2, c : c + 4 : 2].reshape(-1) for r in range(3) for c in range(7 - 3 + 1)
        if c + 2 < 7
    ]  # fmt: skip
    cut = np.stack(windows, axis=1)[None]
    columns = RNG.normal(size=cut.shape)
    found = run(lambda c, i, b: op.patches.col2im(c, i, b, attrs), columns, np.array([5, 6]), np.array([2, 2]))
    assert found.shape == x.shape
    np.testing.assert_allclose(np.sum(cut * columns), np.sum(x * found))
    with pytest.raises(EvalError, match=r"the columns of onnx\.col2im must be multiples of 4 by 15"):
        run(lambda c, i, b: op.patches.col2im(c, i, b, attrs), columns[:, :3], np.array([5, 6]), np.array([2, 2]))


@pytest.mark.parametrize("groups", [1, 2])
def test_without_displacement_it_is_a_convolution(groups: int) -> None:
    x, weight = RNG.normal(size=(2, 4, 6, 5)), RNG.normal(size=(6, 4 // groups, 3, 2))
    wanted = run(
        lambda x, w: op.nn.conv2d(
            x, w, strides=(2, 1), padding=(1, 0, 1, 1), dilation=(1, 2), groups=groups, channels=6, kernel_size=(3, 2)
        ),
        x, weight,
    )  # fmt: skip
    offset = np.zeros((2, 2 * 6 * 2, *wanted.shape[2:]))
    mask = np.ones((2, 6 * 2, *wanted.shape[2:]))
    attrs = DeformAttrs((2, 1), (1, 2), (1, 0, 1, 1), groups, 2)
    found = run(lambda *args: op.patches.deform_conv(*args, attrs), x, weight, offset, mask)
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    # A whole step to the right reads what stands there.
    offset[:, 1::2] = 1
    moved = run(lambda *args: op.patches.deform_conv(*args, attrs), x, weight, offset, mask)
    shifted = np.pad(x, ((0, 0), (0, 0), (0, 0), (0, 1)))[..., 1:]
    again = run(lambda *args: op.patches.deform_conv(*args, attrs), shifted, weight, offset * 0, mask)
    np.testing.assert_allclose(moved[..., 1:], again[..., 1:], atol=1e-9)
