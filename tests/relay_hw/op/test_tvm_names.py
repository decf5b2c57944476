"""Operators under TVM's names, against the loops in numpy that TVM's own tests use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.errors import EvalError, TypeCheckError
from tests.relay_hw.op.test_image import run

testing = pytest.importorskip("tvm.topi.testing", reason="apache-tvm is not installed")
RNG = np.random.default_rng(5)


def real(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
@pytest.mark.parametrize(("layout", "size"), [("NCHW", (6, 3)), ("NHWC", (2, 10))])
def test_resize2d(layout: str, size: tuple[int, int], method: str, mode: str) -> None:
    x = real(2, 3, 4, 5) if layout == "NCHW" else real(2, 4, 5, 3)
    found = run(lambda x: op.image.resize2d(x, size, None, layout, method, mode), x)
    scale = size[0] / 4, size[1] / 5
    np.testing.assert_allclose(found, testing.resize2d_python(x, scale, layout, method, mode), atol=1e-9)


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_each_rounding_of_nearest_places(rounding: str) -> None:
    x = np.arange(8.0).reshape(1, 1, 8)
    for size in (3, 4, 5, 16, 24):
        found = run(
            lambda x, n=size: op.image.resize1d(
                x, n, method="nearest_neighbor", coordinate_transformation_mode="asymmetric", rounding_method=rounding
            ),
            x,
        )
        want = testing.resize1d_python(x, (size / 8,), "NCW", "nearest_neighbor", "asymmetric", rounding)
        assert found.tolist() == want.tolist()


def test_resize3d_and_a_size_that_run_time_knows() -> None:
    x = real(1, 2, 3, 4, 5)
    found = run(lambda x: op.image.resize3d(x, (6, 2, 5)), x)
    np.testing.assert_allclose(
        found, testing.resize3d_python(x, (2, 0.5, 1), "NCDHW", "linear", "half_pixel"), atol=1e-9
    )
    image = real(1, 2, 4, 5)
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 2, 4, 5), float64], %size: Tensor[(2), int64], %roi: Tensor[(0), float32]) {
  dyn.image.resize2d(%x, %size, %roi, method="cubic")
}"""
    given = [image, np.array([6, 3]), np.zeros(0, np.float32)]
    fixed = run(lambda x: op.image.resize2d(x, (6, 3), method="cubic"), image)
    np.testing.assert_allclose(relay.interp.evaluate(relay.fromtext(text), given), fixed)


def test_an_image_of_integers_stays_one() -> None:
    x = RNG.integers(-100, 100, (1, 1, 4, 4)).astype("int8")
    found = run(lambda x: op.image.resize2d(x, (8, 8), method="nearest_neighbor", rounding_method="floor"), x)
    assert found.dtype == np.int8
    half = run(lambda x: op.image.resize2d(x, (2, 2), out_dtype="float32"), x)
    assert half.tolist() == x.astype("float32").reshape(1, 1, 2, 2, 2, 2).mean(axis=(3, 5)).tolist()


@pytest.mark.parametrize("method", ["bilinear", "nearest_neighbor"])
def test_crop_and_resize(method: str) -> None:
    x = real(2, 6, 7, 3).astype("float32")
    boxes = np.array([[0.12, 0.2, 0.8, 0.9], [0.0, 0.0, 1.0, 1.0], [0.52, 0.55, 1.5, 1.2]], np.float32)
    which = np.array([0, 1, 1], np.int32)
    found = run(lambda x, b, i: op.image.crop_and_resize(x, b, i, (4, 3), "NHWC", method, 0.5), x, boxes, which)
    want = testing.crop_and_resize_python(x, boxes, which, (4, 3), "NHWC", method, 0.5)
    np.testing.assert_allclose(found, want, atol=1e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_roi_align(layout: str, ratio: int, mode: str) -> None:
    x = real(2, 3, 8, 9) if layout == "NCHW" else real(2, 8, 9, 3)
    rois = np.array([[0, 1.0, 2.0, 7.5, 6.0], [1, -3.0, 0.5, 20.0, 3.0], [1, 2.0, 2.0, 2.1, 2.1]])
    found = run(lambda x, r: op.vision.roi_align(x, r, (2, 3), 0.7, ratio, layout, mode), x, rois)
    reference = testing.roi_align_nchw_python if layout == "NCHW" else testing.roi_align_nhwc_python
    np.testing.assert_allclose(found, reference(x, rois, (2, 3), 0.7, ratio, mode), atol=1e-9)


def test_roi_pool() -> None:
    x = real(2, 3, 8, 9)
    rois = np.array([[0, 1.0, 2.0, 7.5, 6.0], [1, 0.0, 0.0, 20.0, 30.0], [1, 9.0, 9.0, 30.0, 30.0]])
    found = run(lambda x, r: op.vision.roi_pool(x, r, 3, 0.5), x, rois)
    np.testing.assert_array_equal(found, testing.roi_pool_nchw_python(x, rois, 3, 0.5))


def boxes(batch: int, count: int) -> np.ndarray:
    """Rows of class, score and corners; different scores, two of five below 0."""
    scores = (np.stack([RNG.permutation(count) for _ in range(batch)]) - count * 0.4) / count
    corners = np.sort(RNG.uniform(0, 1, (batch, count, 2, 2)), axis=2).reshape(batch, count, 4)
    return np.concatenate([RNG.integers(-1, 3, (batch, count, 1)), scores[..., None], corners], axis=2)


@pytest.mark.parametrize("by_class", [True, False])
def test_get_valid_counts(by_class: bool) -> None:
    x = boxes(2, 20)
    found = run(lambda x: op.vision.get_valid_counts(x, 0.1, 0 if by_class else -1), x)
    want = testing.get_valid_counts_python(x, 0.1, 0 if by_class else -1)
    for one, other in zip(found, want, strict=True):
        assert one.dtype == other.dtype and np.array_equal(one, other)


@pytest.mark.parametrize("top_k", [-1, 9])
@pytest.mark.parametrize("most", [-1, 4])
@pytest.mark.parametrize(("force", "id_index"), [(True, 0), (False, 0), (False, -1)])
@pytest.mark.parametrize("is_bottom", [False, True])
def test_non_max_suppression(is_bottom: bool, force: bool, id_index: int, most: int, top_k: int) -> None:
    given = boxes(3, 24)
    if top_k > 0:
        # Of rows that are not sorted, TVM's loops take the first ones, its operator the best.
        given = np.take_along_axis(given, np.argsort(-given[:, :, 1:2], axis=1), 1)
    counts, x, places = testing.get_valid_counts_python(given, -0.2, 0)
    for wants_places in (True, False):
        rest = (force, top_k, 2, 1, id_index, wants_places, is_bottom)
        found = run(
            lambda x, c, p, rest=rest: op.vision.non_max_suppression(x, c, p, most, 0.3, *rest), x, counts, places
        )
        want = testing.non_max_suppression_python(x, counts, places, most, 0.3, *rest)
        pairs = zip(found, want, strict=True) if wants_places else [(found, want)]
        for one, other in pairs:
            if not wants_places and not is_bottom:
                # A box that is dropped for its overlap keeps its corners there; that it is dropped is in its score.
                one, other = (np.where(part[..., 1:2] == -1, -1, part) for part in (one, other))
            np.testing.assert_array_equal(one, other)


def test_all_classes_as_onnx_and_as_tensorflow_have_them() -> None:
    corners = np.sort(RNG.uniform(0, 1, (2, 9, 2, 2)), axis=2).reshape(2, 9, 4)
    scores = RNG.permutation(2 * 3 * 9).reshape(2, 3, 9) / 54
    rows, total = run(lambda b, s: op.vision.all_class_non_max_suppression(b, s, 4, 0.3, 0.2), corners, scores)
    given = corners, scores, np.int64(4), np.float64(0.3), np.float64(0.2)
    want = run(lambda *args: relay.op.boxes.boxes_kept(*args), *given)
    assert rows.shape == (54, 3) and int(total[0]) == len(want) and rows[: len(want)].tolist() == want.tolist()
    found, best, counts = run(
        lambda b, s: op.vision.all_class_non_max_suppression(b, s, 4, 0.3, 0.2, "tensorflow"), corners, scores
    )
    for batch, count in enumerate(counts.tolist()):
        assert found[batch, :count].tolist() == want[want[:, 0] == batch][:, 1:].tolist()
        assert best[batch, :count].tolist() == [scores[batch, c, b] for c, b in found[batch, :count]]


def test_deformable_convolution() -> None:
    x, weight = real(2, 4, 6, 7), real(5, 4, 3, 2)
    offset = RNG.uniform(-1.5, 1.5, (2, 2 * 2 * 6, 3, 6))
    settings: dict[str, Any] = {"strides": (2, 1), "padding": (1, 0), "dilation": (1, 1), "deformable_groups": 2}
    found = run(lambda x, o, w: op.nn.deformable_conv2d(x, o, w, **settings), x, offset, weight)
    want = testing.deformable_conv2d_nchw_python(x, offset, weight, (2, 1), (1, 0), (1, 1), 2, 1)
    np.testing.assert_allclose(found, want, atol=1e-9)
    last = lambda one: np.ascontiguousarray(one.transpose(0, 2, 3, 1))  # noqa: E731
    laid = run(
        lambda x, o, w: op.nn.deformable_conv2d(x, o, w, data_layout="NHWC", kernel_layout="HWIO", **settings),
        last(x), last(offset), weight.transpose(2, 3, 1, 0),
    )  # fmt: skip
    np.testing.assert_allclose(laid, last(found), atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_sequence_mask(axis: int) -> None:
    x, lengths = real(4, 5, 2), RNG.integers(0, 6, 5 if axis == 0 else 4)
    found = run(lambda x, n: op.sequence_mask(x, n, -7.0, axis), x, lengths)
    np.testing.assert_array_equal(found, testing.sequence_mask(x, lengths, -7.0, axis))


def test_blocks_of_samples() -> None:
    x = real(2, 5, 4, 3)
    found = run(lambda x: op.nn.space_to_batch_nd(x, (2, 2), [(1, 0), (0, 2)], 9.0), x)
    padded = np.pad(x, [(0, 0), (1, 0), (0, 2), (0, 0)], constant_values=9.0)
    assert found.shape == (8, 3, 3, 3)
    for i, j, image in np.ndindex(2, 2, 2):
        np.testing.assert_array_equal(found[(i * 2 + j) * 2 + image], padded[image, i::2, j::2])
    back = run(lambda x: op.nn.batch_to_space_nd(x, (2, 2), [(1, 0), (0, 2)]), found)
    np.testing.assert_array_equal(back, x)


def test_dilate() -> None:
    x = real(3, 1, 4)
    found = run(lambda x: op.nn.dilate(x, (2, 4, 3), 0.5), x)
    np.testing.assert_array_equal(found, testing.dilate_python(x, (2, 4, 3), 0.5))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nll_loss(reduction: str) -> None:
    x, targets, weights = real(3, 4, 5), RNG.integers(0, 4, (3, 5)), RNG.uniform(0.1, 2, 4)
    found = run(lambda x, t, w: op.nn.nll_loss(x, t, w, reduction, 2), x, targets, weights)
    np.testing.assert_allclose(found, testing.nll_loss(x, targets, weights, reduction, 2))


@pytest.mark.parametrize(
    ("k", "align"),
    [(0, "RIGHT_LEFT"), (-2, "LEFT_LEFT"), (3, "RIGHT_RIGHT")]
    + [((-2, 2), f"{a}_{b}") for a in ("LEFT", "RIGHT") for b in ("LEFT", "RIGHT")],
)
def test_matrix_set_diag(k: Any, align: str) -> None:
    x = real(2, 4, 5)
    diagonal = real(2, 4) if k == 0 else real(2, 2) if isinstance(k, int) else real(2, 5, 4)
    found = run(lambda x, d: op.matrix_set_diag(x, d, k, align), x, diagonal)
    np.testing.assert_array_equal(found, testing.matrix_set_diag(x, diagonal, k, align))


def test_the_rest_in_numpy() -> None:
    x = real(4, 6)
    assert np.array_equal(
        run(lambda x: op.sliding_window(x, 0, (2, 3), (2, 1)), x),
        [[x[i : i + 2, j : j + 3] for j in range(4)] for i in (0, 2)],
    )
    assert np.array_equal(run(op.slice_like, x, np.zeros((2, 3))), x[:2, :3])
    for indexing in ("ij", "xy"):
        parts = run(lambda a, b, c, i=indexing: op.meshgrid((a, b, c), i), real(2), real(3), real(4))
        assert [part.shape for part in parts] == [(2, 3, 4) if indexing == "ij" else (3, 2, 4)] * 3
    found = run(lambda p: op.unravel_index(p, (2, 3, 4)), np.array([[0, 23], [5, 12]]))
    assert found.tolist() == np.stack(np.unravel_index([[0, 23], [5, 12]], (2, 3, 4))).tolist()
    order = RNG.permutation(9)
    assert order[run(op.invert_permutation, order)].tolist() == list(range(9))
    rows, columns = np.array([[1], [-1]]), np.array([0, 2, 5])
    assert np.array_equal(run(lambda x, r, c: op.adv_index((x, r, c)), x, rows, columns), x[rows, columns])
    part = real(2, 3)
    found = run(op.strided_set, x, part, np.array([0, 5]), np.array([4, -7]), np.array([2, -2]))
    want = x.copy()
    want[0:4:2, 5:-7:-2] = part
    assert np.array_equal(found, want)
    dense = run(
        lambda p, v: op.sparse_to_dense(p, (3, 4), v, op.const(2.0, "float64")), np.array([[0, 1], [2, 3]]), real(2)
    )
    assert dense.shape == (3, 4) and np.sum(dense == 2) == 10
    assert run(lambda n: op.dynamic.ones(n, "int8"), np.array([2, 3])).tolist() == [[1] * 3] * 2


def test_unique_has_the_length_of_its_argument() -> None:
    x = np.array([5, 3, 5, 5, 9, 3])
    found = run(lambda x: op.unique(x, False, True), x)
    assert [part.tolist() for part in found] == [
        [5, 3, 9, 0, 0, 0],
        [0, 1, 4, 0, 0, 0],
        [0, 1, 0, 0, 2, 1],
        [3],
        [3, 2, 1, 0, 0, 0],
    ]
    assert run(op.unique, x)[0].tolist() == [3, 5, 9, 0, 0, 0]


@pytest.mark.parametrize("onesided", [True, False])
def test_stft_is_the_transform_of_each_frame(onesided: bool) -> None:
    x, window = real(2, 20), real(8)
    found = run(lambda x, w: op.stft(x, 8, 3, 8, w, True, onesided), x, window)
    frames = np.stack([x[:, at : at + 8] * window for at in range(0, 13, 3)], axis=2)
    want = (np.fft.rfft if onesided else np.fft.fft)(frames, axis=1) / np.sqrt(8)
    np.testing.assert_allclose(found, np.stack([want.real, want.imag], axis=-1), atol=1e-12)
    short = run(lambda x, w: op.stft(x, 4, 4, 3, w), x, window[:3])
    frames = x.reshape(2, 5, 4)[:, :, :3] * window[:3]
    # The window is shorter than the transform: frequencies count in parts of the window.
    turns = np.exp(-2j * np.pi * np.outer(np.arange(3), np.arange(3)) / 3)
    np.testing.assert_allclose(short[..., 0], np.einsum("nfk,kr->nrf", frames, turns).real, atol=1e-12)


REFUSED: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
    (lambda x: op.image.resize2d(x, (2, 2), method="area"), (np.zeros((1, 1, 2, 2)),), TypeCheckError,
     "the method of image.resize2d must be one of nearest_neighbor, linear, cubic, not 'area'"),
    (lambda x: op.image.resize2d(x, (0, 2)), (np.zeros((1, 1, 2, 2)),), TypeCheckError,
     "image.resize2d must get NCHW data and 2 positive sizes"),
    (lambda x, r: op.vision.roi_align(x, r, 2, 1.0, mode="min"), (np.zeros((1, 1, 4, 4)), np.zeros((1, 5))),
     TypeCheckError, "the mode of vision.roi_align must be avg or max, not min"),
    (lambda x, r: op.vision.roi_pool(x, r, 2, 1.0), (np.zeros((1, 1, 4, 4)), np.zeros((1, 4))), TypeCheckError,
     "must get images of 4 axes and regions"),
    (lambda x: op.vision.get_valid_counts(x, 0.0, 0, 7), (np.zeros((1, 3, 6)),), TypeCheckError,
     "the places in a row of vision.get_valid_counts must be below 6"),
    (lambda x, n: op.sequence_mask(x, n, 0.0, 2), (np.zeros((2, 3, 4)), np.zeros(3, int)), TypeCheckError,
     "axis 0 or 1"),
    (lambda x: op.sliding_window(x, 0, (5, 1), (1, 1)), (np.zeros((4, 4)),), TypeCheckError,
     "must have a size and a stride"),
    (op.slice_like, (np.zeros((2, 2)), np.zeros((3, 2))), TypeCheckError, "must be at most 2 long, not 3"),
    (op.invert_permutation, (np.array([0, 0]),), EvalError, "must get the numbers 0 to 1, each once"),
    (lambda p: op.unravel_index(p, (2, 2)), (np.array([4]),), EvalError, r"must be in \[0, 4\)"),
    (lambda x, p: op.adv_index((x, p)), (np.zeros(3), np.array([3])), EvalError, r"must be in \[-3, 3\), not \[3\]"),
    (lambda x: op.unique(x), (np.zeros((2, 2)),), TypeCheckError, "unique must get a vector"),
    (lambda x: op.stft(x, 8), (np.zeros((1, 4)),), TypeCheckError, "must have 8 samples or more, not 4"),
    (lambda x, t, w: op.nn.nll_loss(x, t, w), (np.zeros((1, 2)), np.array([2]), np.zeros(2)), EvalError,
     r"must be in \[0, 2\), not \[2\]"),
    (lambda x: op.nn.dilate(x, (0,)), (np.zeros(2),), TypeCheckError, "strides of nn.dilate must be at least 1"),
    (lambda x: op.nn.space_to_batch_nd(x, (2,), [(0, 0)]), (np.zeros((1, 3)),), TypeCheckError,
     "must be a multiple of 2"),
    (lambda x: op.nn.batch_to_space_nd(x, (2,), [(3, 0)]), (np.zeros((2, 1)),), TypeCheckError, "must leave elements"),
    (lambda x, d: op.matrix_set_diag(x, d, 5), (np.zeros((2, 2)), np.zeros(1)), TypeCheckError,
     "must lie in the matrix"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "values", "error", "sentence"), REFUSED)
def test_refusals(build: Any, values: tuple[Any, ...], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        run(build, *values)
