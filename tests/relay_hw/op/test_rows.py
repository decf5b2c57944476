"""Integer softmax and norms: to the bit against hardware written in Python's integers, and near the real ones."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.ir.types import ANY, TensorType
from relay_hw.op.rows import WHOLE, bit_length, exponentials, inverse_root, reciprocal

SCALES = (1e-4, 0.002, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0)
LENGTHS = (1, 2, 3, 7, 16, 64, 197, 1000, 4096)
UNITS = {256: {"multiplier": 1 << 15, "shift": 7}, 255: {"multiplier": 255 << 8, "shift": 8}}


# Units of results that are all small.
FINE = {"multiplier": 40000, "shift": -7, "zero_point": 0}


def rounded(value: int, shift: int) -> int:
    return (value + (1 << shift >> 1)) >> shift


def clip(value: int) -> int:
    return max(-128, min(127, value))


def divided(total: int) -> tuple[int, int]:
    """18 trial subtractions, one bit of the quotient each."""
    bits = max(total.bit_length(), 1)
    highest = total << 16 >> bits if total else 1 << 15
    rest, quotient = (1 << 32) - 1, 0
    for place in range(17, -1, -1):
        if rest >= highest << place:
            rest, quotient = rest - (highest << place), quotient | 1 << place
    return bits, quotient


def rooted(value: int) -> tuple[int, int]:
    """16 trials, one bit of the root each."""
    value = max(value, 16)
    half = (value.bit_length() + 1) // 2 - 8
    highest = value >> 2 * half if half >= 0 else value << -2 * half
    assert 1 << 14 <= highest < 1 << 16
    root = 0
    for place in range(15, -1, -1):
        trial = root | 1 << place
        root = trial if trial * trial * highest < 1 << 46 else root
    return half, root


def soft_row(row: list[int], table: list[int], length: int, numbers: dict[str, int]) -> list[int]:
    """One row through buffer, table, divider and multiplier."""
    top = max([-128, *row[: max(length, 0)]])
    entries = [table[top - x] if at < length else 0 for at, x in enumerate(row)]
    bits, inverse = divided(sum((entry & 4095) << (entry >> 12) for entry in entries))
    factor = inverse * numbers["multiplier"] >> 16
    assert factor < 1 << 17
    shifts = [max(bits + numbers["shift"] - (entry >> 12), 0) for entry in entries]
    results = [rounded((e & 4095) * factor, by) for e, by in zip(entries, shifts, strict=True)]
    return [clip(result + numbers.get("zero_point", -128)) for result in results]


def normal_row(row: list[int], gain: list[int], bias: list[int], numbers: dict[str, int]) -> list[int]:
    """One row through sums, root and two multipliers; `numbers["input_zero_point"]` makes it RMS norm."""
    n, rms = len(row), "input_zero_point" in numbers
    u = [x - numbers.get("input_zero_point", 0) for x in row]
    total, squares = (0 if rms else sum(u)), sum(x * x for x in u)
    assert abs(total) < 1 << 31 and squares < 1 << 32
    value = 16 * (n * squares - total * total) + numbers["epsilon"]
    assert value < 1 << 49
    half, root = rooted(value)
    drop = max(half + (n.bit_length() + 1) // 2 - 11, 0)
    results = []
    for x, g, b in zip(u, gain, bias, strict=True):
        element = rounded(n * x - total, drop)
        assert -(1 << 17) <= element < 1 << 17
        z = max(-131071, min(131071, rounded(element * root, 11 + half - drop)))
        results.append(clip(rounded(z * g + b, numbers["shift"]) + numbers["zero_point"]))
    return results


def hard_rows(generator: np.random.Generator, columns: int, count: int) -> np.ndarray:
    """Rows of any spread; all equal, one hot, one cold, extremes, halves, one step, ramps."""
    level, spread = (generator.integers(low, 128, (count, 1)) for low in (-128, 0))
    drawn = np.clip(generator.normal(size=(count, columns)) * spread + level, -128, 127)
    special = [np.full(columns, value) for value in (-128, 0, 127)]
    for rest, one in ((-128, 127), (127, -128), (0, 1), (-1, 0), (126, 127), (-128, -127)):
        special.append(np.where(np.arange(columns) == columns // 2, one, rest))
        special.append(np.where(np.arange(columns) % 2, one, rest))
    special.append(np.linspace(-128, 127, columns).round())
    return np.concatenate([drawn, special]).astype(np.int8)


def probabilities(rows: np.ndarray, scale: float) -> np.ndarray:
    powers = np.exp((rows.astype(float) - rows.max(-1, keepdims=True)) * scale)
    return powers / powers.sum(-1, keepdims=True)


def test_reciprocal_and_root_are_those_of_the_trials() -> None:
    powers = [1 << at for at in range(49)]
    values = sorted({0, *powers, *(p - 1 for p in powers), *(p + 1 for p in powers), *(3 * p for p in powers)})
    values += np.random.default_rng(0).integers(0, 1 << 49, 2000).tolist()
    assert bit_length(np.array(values)).tolist() == [value.bit_length() for value in values]
    for found, want in ((reciprocal, divided), (inverse_root, rooted)):
        pairs = np.stack(found(np.array(values)), axis=-1)
        assert [tuple(pair) for pair in pairs.tolist()] == [want(value) for value in values]
    # For each cut of a number, the root is the largest one.
    for highest in (*range(1 << 14, 1 << 16, 97), (1 << 14) + 1, (1 << 16) - 1):
        assert rooted(highest)[1] == isqrt(((1 << 46) - 1) // highest)


def test_exponentials_are_near_and_their_largest_one_is_first() -> None:
    for scale in (*SCALES, 0.0, 300.0):
        table = exponentials(scale).astype(np.int64)
        values = (table & 4095) << (table >> 12)
        real = np.exp(-scale * np.arange(256)) * values[0]
        assert table[0] == 4095 | 15 << 12 and (np.diff(values) <= 0).all()
        assert (abs(values - real) <= np.maximum(real * 2.0**-12, 0.5) * 1.0001).all()


@pytest.mark.parametrize("columns", LENGTHS)
def test_softmax_is_within_a_unit_of_the_real_one(columns: int, apply: Callable[..., np.ndarray]) -> None:
    generator = np.random.default_rng(columns)
    rows = hard_rows(generator, columns, 40)
    for scale in SCALES:
        far = np.where(np.arange(columns) == 0, 127, np.clip(127 - 11.8 / scale, -128, 127)).astype(np.int8)
        given = np.concatenate([rows, far[None]])
        real = probabilities(given, scale)
        for units, numbers in UNITS.items():
            got = apply(op.fixed.softmax, given, exponentials(scale), **numbers) + 128.0
            wanted = np.minimum(real * units, 255)
            assert abs(got - wanted).max() < 0.7 and abs(got - real * units).max() <= 1


def test_softmax_to_the_bit(apply: Callable[..., np.ndarray]) -> None:
    generator = np.random.default_rng(1)
    for columns in (1, 2, 33, 200, 4096):
        rows = hard_rows(generator, columns, 8)
        for scale in (0.01, 0.3):
            for numbers in (*UNITS.values(), {"multiplier": 54321, "shift": 0, "zero_point": 5}, FINE):
                for length in (0, 1, columns // 2, columns, columns + 9, -3):
                    table, known = exponentials(scale), np.array([length], np.int32)
                    got = apply(lambda x, t, n, k=numbers: op.fixed.softmax(x, t, n, **k), rows, table, known)
                    want = [soft_row(row, table.tolist(), length, numbers) for row in rows[::5].tolist()]
                    assert got[::5].tolist() == want
    # Any table, of no exponentials at all.
    rows = hard_rows(generator, 20, 8)
    for table in (np.zeros(256, np.uint16), generator.integers(0, 1 << 16, 256).astype(np.uint16)):
        got = apply(op.fixed.softmax, rows, table, multiplier=40000, shift=3)
        numbers = {"multiplier": 40000, "shift": 3}
        assert got.tolist() == [soft_row(row, table.tolist(), WHOLE, numbers) for row in rows.tolist()]


def test_masks_hide_columns(apply: Callable[..., np.ndarray]) -> None:
    rows = np.random.default_rng(2).integers(-128, 128, (3, 4, 5, 7)).astype(np.int8)
    table, lengths = exponentials(0.05), np.array([2, 0, 100], np.int32)
    masked = apply(lambda x, t, n: op.fixed.softmax(x, t, n, causal=True), rows, table, lengths)
    for part, head, row in np.ndindex(3, 4, 5):
        # The last of 5 rows sees all of 7 columns.
        seen = min(int(lengths[part]), row + 3, 7)
        alone = apply(op.fixed.softmax, rows[part, head, row, :seen], table) if seen else np.zeros(0)
        assert masked[part, head, row].tolist() == [*alone.tolist(), *[-128] * (7 - seen)]
    two_bytes = np.array([[2, 0, 9], [0, 0, 9], [-56, 1, 9]], np.int8)  # 2, 0 and 200 + 256
    assert (apply(lambda x, t, n: op.fixed.softmax(x, t, n, causal=True), rows, table, two_bytes) == masked).all()
    tall = apply(op.fixed.softmax, rows.transpose(0, 1, 3, 2), table, causal=True)
    assert (tall[..., :2, :] == -128).all() and (tall[..., 2, 1:] == -128).all()


def real_norm(rows: np.ndarray, scale: float, zero: int | None, epsilon: float) -> np.ndarray:
    data = (rows.astype(float) - (zero or 0)) * scale
    data = data - data.mean(-1, keepdims=True) if zero is None else data
    return data / np.sqrt(np.square(data).mean(-1, keepdims=True) + epsilon)


def norm_numbers(gamma: np.ndarray, beta: np.ndarray, unit: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Gain, bias and shift of a norm whose result has this unit."""
    most = min(32767 * 1024 * unit / abs(gamma).max(), (2**31 - 1) * unit / max(abs(beta).max(), 1e-9))
    shift = int(np.floor(np.log2(most)))
    gain, bias = gamma / unit / 1024 * 2.0**shift, beta / unit * 2.0**shift
    return np.rint(gain).astype(np.int16), np.rint(bias).astype(np.int32), shift


def norm_errors(rows: np.ndarray, scale: float, zero: int | None, seed: int, apply: Any) -> np.ndarray:
    """How many units each element of a norm is from the real one."""
    generator, n = np.random.default_rng(seed), rows.shape[-1]
    gamma, beta = generator.normal(1, 0.3, n), generator.normal(0, 0.5, n)
    unit = 4 * abs(gamma).max() / 127
    gain, bias, shift = norm_numbers(gamma, beta, unit)
    numbers: dict[str, int] = {"shift": shift, "epsilon": round(16e-5 / scale**2 * n * n), "zero_point": 4}
    build = op.fixed.layer_norm if zero is None else op.fixed.rms_norm
    numbers |= {} if zero is None else {"input_zero_point": zero}
    got = apply(build, rows, gain, bias, **numbers).astype(float)
    wanted = (real_norm(rows, scale, zero, 1e-5) * gamma + beta) / unit + 4
    return abs(got - np.clip(wanted, -128, 127))


@pytest.mark.parametrize("zero", [None, -7])
@pytest.mark.parametrize("columns", [16, 64, 192, 768, 4096, 16384])
def test_norms_are_within_a_unit_of_the_real_ones(
    columns: int, zero: int | None, apply: Callable[..., np.ndarray]
) -> None:
    for seed, scale in enumerate((0.001, 0.02, 0.3)):
        rows = hard_rows(np.random.default_rng(seed), columns, 60)
        errors = norm_errors(rows, scale, zero, seed, apply)
        assert (errors <= 1).mean() >= 0.999 and errors.max() < 2


def test_norms_to_the_bit(apply: Callable[..., np.ndarray]) -> None:
    generator = np.random.default_rng(3)
    for columns in (1, 2, 33, 511, 512, 5000, 16384):
        rows = hard_rows(generator, columns, 4)
        gain = generator.integers(-(2**15), 2**15, columns).astype(np.int16)
        bias = generator.integers(-(2**31), 2**31, columns).astype(np.int32)
        for shift, epsilon in ((0, 0), (20, 1), (26, 12345), (40, (1 << 48) - 1)):
            numbers = {"shift": shift, "epsilon": epsilon, "zero_point": -3}
            for more, build in (({}, op.fixed.layer_norm), ({"input_zero_point": -128}, op.fixed.rms_norm)):
                got = apply(build, rows, gain, bias, **numbers, **more)[::3]
                lists = gain.tolist(), bias.tolist()
                assert got.tolist() == [normal_row(row, *lists, numbers | more) for row in rows[::3].tolist()]


@pytest.mark.long
def test_a_million_rows(apply: Callable[..., np.ndarray]) -> None:
    generator, seen, count = np.random.default_rng(4), 0, 4000
    near = elements = 0
    while seen < 1_000_000:
        columns = int(np.exp(generator.uniform(0, np.log(500))))
        scale = float(np.exp(generator.uniform(np.log(1e-4), np.log(5))))
        rows = hard_rows(generator, columns, count)
        real = probabilities(rows, scale) * 256
        got = apply(op.fixed.softmax, rows, exponentials(scale)) + 128.0
        assert abs(got - np.minimum(real, 255)).max() < 0.7
        for zero in (None, int(generator.integers(-128, 128))):
            errors = norm_errors(rows, scale, zero, seen, apply) if columns >= 16 else np.zeros(1)
            near, elements = near + int((errors <= 1).sum()), elements + errors.size
        seen += len(rows)
    assert near >= 0.999 * elements


def test_type_errors_of_softmax(refuse: Callable[..., str]) -> None:
    data, table, one = TensorType((2, 3), "int8"), TensorType((256,), "uint16"), TensorType((1,), "int32")

    def refused(*types: TensorType, **attributes: Any) -> str:
        return refuse(lambda x, t, n, **rest: op.fixed.softmax(x, t, n, **rest), *types, **attributes)

    assert refused(TensorType((2, 3)), table, one) == "the data of fixed.softmax must be int8, not float32"
    assert refused(TensorType((), "int8"), table, one) == "the data of fixed.softmax must have an axis, not none"
    assert refused(TensorType((2, 65537), "int8"), table, one) == (
        "the rows of fixed.softmax must have 1 to 65536 columns, not 65537"
    )
    assert refused(data, TensorType((256,), "int16"), one) == (
        "the table of fixed.softmax must be 256 numbers of uint16, not (256,) of int16"
    )
    assert refused(data, table, TensorType((3,), "int32")) == (
        "the lengths of fixed.softmax must be one int32, or its bytes, or one for each part of the first axis, "
        "not (3,) of int32"
    )
    assert refused(data, table, TensorType((1, 1), "int8")) == (
        "lengths of fixed.softmax in bytes must have 2 or more each, not 1"
    )
    assert refused(TensorType((3,), "int8"), table, one, causal=True) == (
        "the data of causal fixed.softmax must have 2 axes, not 1"
    )
    assert refused(data, table, one, multiplier=1) == ("multiplier of fixed.softmax must be in [32768, 65535], not 1")
    assert refused(data, table, one, shift=16) == "shift of fixed.softmax must be in [-15, 15], not 16"
    assert refused(data, table, one, zero_point=128) == "zero_point of fixed.softmax must be in [-128, 127], not 128"


def test_type_errors_of_norms(refuse: Callable[..., str], infer: Callable[..., Any]) -> None:
    data, gain, bias = TensorType((2, 3), "int8"), TensorType((3,), "int16"), TensorType((3,), "int32")
    assert refuse(op.fixed.layer_norm, TensorType((2, 3)), gain, bias, shift=1) == (
        "the data of fixed.layer_norm must be int8, not float32"
    )
    assert refuse(op.fixed.rms_norm, TensorType((16385,), "int8"), gain, bias, shift=1) == (
        "the rows of fixed.rms_norm must have 1 to 16384 columns, not 16385"
    )
    assert refuse(op.fixed.layer_norm, data, bias, bias, shift=1) == (
        "the gain of fixed.layer_norm must be Tensor[(3,), int16], not Tensor[(3,), int32]"
    )
    assert refuse(op.fixed.layer_norm, data, gain, gain, shift=1) == (
        "the bias of fixed.layer_norm must be Tensor[(3,), int32], not Tensor[(3,), int16]"
    )
    for name, value, limits in (
        ("shift", 41, "[0, 40]"),
        ("epsilon", -1, f"[0, {(1 << 48) - 1}]"),
        ("zero_point", 128, "[-128, 127]"),
    ):
        assert refuse(op.fixed.layer_norm, data, gain, bias, **{"shift": 1, name: value}) == (
            f"{name} of fixed.layer_norm must be in {limits}, not {value}"
        )
    assert refuse(op.fixed.rms_norm, data, gain, bias, shift=1, input_zero_point=-129) == (
        "input_zero_point of fixed.rms_norm must be in [-128, 127], not -129"
    )
    assert infer(op.fixed.layer_norm, None, None, None, shift=1)[0] is None
    known, types = infer(op.fixed.layer_norm, TensorType((ANY, 3), "int8"), None, None, shift=1)
    assert known == TensorType((ANY, 3), "int8") and types[1:] == [gain, bias]


def test_nothing_of_nothing(apply: Callable[..., np.ndarray]) -> None:
    assert apply(op.fixed.softmax, np.zeros((0, 3), np.int8), exponentials(0.1)).shape == (0, 3)
    gain, bias = np.ones(3, np.int16), np.zeros(3, np.int32)
    assert apply(op.fixed.layer_norm, np.zeros((0, 3), np.int8), gain, bias, shift=0).shape == (0, 3)
