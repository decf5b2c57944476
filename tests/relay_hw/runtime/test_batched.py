"""Calls of a fragment that are computed together: the bits of single calls, in fewer launches and cycles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw.accel.isa.config import load_config
from relay_hw.errors import ArtifactError, InputError
from relay_hw.ir.expr import Function
from relay_hw.runtime import CompileOptions, compile_model
from relay_hw.runtime.artifact import Artifact, load_artifact, manifest_bytes
from relay_hw.runtime.batched import Batch, Form, joined_rows, row_of
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.manifest import manifest_from_json
from relay_hw.runtime.result import Result
from relay_hw.runtime.static_report import static_report
from relay_hw.target.accel.devices import close_device, open_device
from relay_hw.target.accel.target import AccelTarget
from tests.relay_hw import recurrent
from tests.relay_hw.transform.reference import plain

SMALL = {"(192, 32)": "(48, 8)", "(320, 128)": "(80, 32)", "(320)": "(80)", "units=192": "units=48"}
SMALL |= {"units=320": "units=80", "(1, 32)": "(1, 8)", "(1, 64)": "(1, 16)"}


def small_tree() -> tuple[relay.IRModule, Mapping[str, Any]]:
    """The TreeLSTM of the examples, a quarter as wide."""
    text = (recurrent.EXAMPLES / "treelstm.relay").read_text()
    for old, new in SMALL.items():
        assert old in text
        text = text.replace(old, new)
    rng = np.random.default_rng(8)
    shapes = {"wl": (48, 8), "wn": (80, 32), "bn": (80,)}
    return relay.fromtext(text), {name: recurrent.uniform(rng, *shape) for name, shape in shapes.items()}


def small_trees(mod: relay.IRModule, count: int, seed: int) -> list[Any]:
    """Trees whose leaves have the first eight numbers of those of `recurrent.trees`."""

    def cut(tree: Any) -> Any:
        if tree.constructor.name_hint == "Leaf":
            return relay.interp.ConstructorValue(tree.constructor, (tree.fields[0][:, :8],))
        return relay.interp.ConstructorValue(tree.constructor, tuple(map(cut, tree.fields)))

    return [cut(tree) for tree in recurrent.trees(mod, count, seed)]


def build(program: Any, data: Mapping[str, Any], folder: Path, calls: int, **options: Any) -> Artifact:
    chosen = CompileOptions(**{"host_target": "numpy", "batch_calls": calls, **options})
    return compile_model(program[0], chosen, params=program[1], calibration=data).save(folder / f"build{calls}")


def run(artifact: Artifact, device: str | None, data: Mapping[str, Any], chunk: int) -> Result:
    opened = open_device(device, artifact.config) if device is not None else None
    try:
        return Executor(artifact, opened).run(data, chunk=chunk)
    finally:
        if opened is not None:
            close_device(opened)


def values(result: Result) -> list[Any]:
    return [[plain(one) for one in value] for value in result.outputs.values()]


def spent(result: Result) -> int:
    return sum(result.chunk_cycles or ())


def test_a_hundred_trees_take_a_fifth_of_the_cycles(tmp_path: Path) -> None:
    """Same bits on every device and without one, and as many rows as there were calls."""
    program = small_tree()
    seen = {"tree": small_trees(program[0], 6, seed=1)}
    one, many = (build(program, seen, tmp_path, calls) for calls in (1, 32))
    data = {"tree": small_trees(program[0], 100, seed=6)}
    alone, together = run(one, "cycle", data, 100), run(many, "cycle", data, 100)
    assert values(together) == values(alone) == values(run(many, None, data, 100))
    assert values(run(many, "functional", data, 30)) == values(alone)
    assert len(together.calls) * 10 < len(alone.calls)
    assert spent(together) * 5 <= spent(alone), (spent(together), spent(alone))


def test_the_verilog_computes_calls_together(tmp_path: Path) -> None:
    program = small_tree()
    many = build(program, {"tree": small_trees(program[0], 6, seed=1)}, tmp_path, 4, config="tiny")
    data = {"tree": small_trees(program[0], 3, seed=6)}
    have = run(many, "rtl", data, 3)
    assert values(have) == values(run(many, None, data, 1))
    forms = {row.form for row in many.manifest.batched}
    assert len(forms) == 4 and set(have.calls) - {"accel_0", "accel_1"}


def test_the_leaves_of_one_tree_are_computed_together(tmp_path: Path) -> None:
    """One sample at a time: calls that need none of the others are gathered, by depth."""
    program = small_tree()
    one, many = (build(program, {"tree": small_trees(program[0], 6, seed=1)}, tmp_path, calls) for calls in (1, 4))
    data = {"tree": small_trees(program[0], 5, seed=2)}
    alone, together = run(one, "cycle", data, 1), run(many, "cycle", data, 1)
    assert values(together) == values(alone)
    assert len(together.calls) < len(alone.calls) and spent(together) < spent(alone)
    assert all(now <= before for now, before in zip(together.cycles or (), alone.cycles or (), strict=True))


LIST = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
def @map(%l: List[Tensor[(1, 16), float32]], %w: Tensor[(16, 16), float32]) -> List[Tensor[(1, 16), float32]] {
  match (%l) {
    Cons(%h, %t) => { Cons(tanh(nn.dense(%h, %w, units=16)), @map(%t, %w)) },
    Nil => { Nil },
  }
}
def @main(%l: List[Tensor[(1, 16), float32]], %w: Tensor[(16, 16), float32]) -> List[Tensor[(1, 16), float32]] {
  @map(%l, %w)
}
"""


def lists(mod: relay.IRModule, sizes: tuple[int, ...]) -> list[Any]:
    cons, nil = mod.types["List"].constructors
    rng = np.random.default_rng(3)
    found = []
    for size in sizes:
        value = relay.interp.ConstructorValue(nil, ())
        for _ in range(size):
            value = relay.interp.ConstructorValue(cons, (rng.normal(size=(1, 16)).astype("float32"), value))
        found.append(value)
    return found


def test_the_elements_of_a_list_are_one_launch(tmp_path: Path) -> None:
    mod = relay.fromtext(LIST)
    program = (mod, {"w": recurrent.uniform(np.random.default_rng(4), 16, 16)})
    one, many = (build(program, {"l": lists(mod, (5, 3))}, tmp_path, calls) for calls in (1, 8))
    data = {"l": lists(mod, (8, 0, 1, 19))}
    alone, together = run(one, "functional", data, 1), run(many, "functional", data, 1)
    assert values(together) == values(alone)
    # Nineteen elements fill two forms, and the rest pays for a third; one element does not.
    assert [launch.sample for launch in together.launches] == [0, 2, 3, 3, 3]
    assert len(alone.launches) == 28


def test_programs_with_effects_gather_across_samples_alone(tmp_path: Path) -> None:
    program = recurrent.scan()
    rng = np.random.default_rng(12)
    seen, data = ({"x": rng.normal(size=(n, 5, 1, 16)).astype("float32")} for n in (6, 4))
    one, many = (build(program, seen, tmp_path, calls) for calls in (1, 4))
    alone = run(one, "functional", data, 1)
    for chunk, launches in ((1, len(alone.calls)), (4, len(alone.calls) // 4)):
        together = run(many, "functional", data, chunk)
        assert values(together) == values(alone) and len(together.calls) == launches


def test_loops_of_samples_run_together(tmp_path: Path) -> None:
    """Loops that end at different times: the last ones run by themselves."""
    program = recurrent.newton()
    rng = np.random.default_rng(12)
    seen, data = ({"x": 3 * rng.normal(size=(n, 1, 32)).astype("float32")} for n in (12, 9))
    one, many = (build(program, seen, tmp_path, calls) for calls in (1, 4))
    alone, together = run(one, "cycle", data, 1), run(many, "cycle", data, 9)
    assert values(together) == values(alone)
    assert len(together.calls) < len(alone.calls) / 2


@pytest.mark.parametrize("name", ["lstm", "gru", "translator", "conv_newton"])
def test_steps_of_many_samples_share_launches(name: str, tmp_path: Path) -> None:
    """Counters, rows taken by a step's number, convolutions and gates stay outside of what is computed together."""
    program = recurrent.lstm(16, 16, 4) if name == "lstm" else getattr(recurrent, name)()
    shape = program[0]["main"].params[0].type_annotation.static_shape
    rng = np.random.default_rng(7)
    seen, data = ({"x": rng.normal(size=(count, *shape)).astype("float32")} for count in (4, 6))
    one, many = (build(program, seen, tmp_path, calls, validate=False) for calls in (1, 6))
    alone = run(one, "functional", data, 1)
    together = run(many, "functional", data, 6)
    assert values(together) == values(run(many, "functional", data, 1)) == values(alone)
    assert len(together.calls) * 2 < len(alone.calls)


def test_fragments_on_the_host_are_computed_together(tmp_path: Path) -> None:
    program = small_tree()
    seen = {"tree": small_trees(program[0], 6, seed=1)}
    one, many = (build(program, seen, tmp_path, calls, accelerate=False) for calls in (1, 16))
    data = {"tree": small_trees(program[0], 20, seed=6)}
    alone, together = run(one, None, data, 1), run(many, None, data, 20)
    assert values(together) == values(alone)
    assert sum(row.calls for row in together.segments) * 4 < sum(row.calls for row in alone.segments)
    # An inference's work is that of single calls.
    assert static_report(many.manifest).all_macs == static_report(one.manifest).all_macs > 0


class FewRows(AccelTarget):
    """Runs layers of up to six rows."""

    def why_not(self, composite: Function) -> str | None:
        rows = composite.params[0].tensor_type.static_shape[0]
        return super().why_not(composite) if rows <= 6 else f"a layer must have at most 6 rows, not {rows}"


def test_an_inference_is_counted_by_single_calls(tmp_path: Path) -> None:
    """Also where no sample could be run, so that each region counts once."""
    mod, weights = recurrent.newton()
    data = {"x": 3 * np.random.default_rng(12).normal(size=(6, 1, 32)).astype("float32")}
    one, many = (build((mod, weights), data, tmp_path, calls, validate=False) for calls in (1, 4))
    assert many.manifest.calls == one.manifest.calls and set(one.manifest.calls) == {"accel_0"}
    assert static_report(many.manifest).macs == static_report(one.manifest).macs
    names = {row.name for row in many.manifest.regions}
    assert names == {"accel_0", "accel_1", "accel_2"}


def test_forms_are_as_large_as_the_accelerator_takes(tmp_path: Path) -> None:
    """Of a form that the target cannot run there is a smaller one."""
    program = recurrent.newton()
    data = {"x": 3 * np.random.default_rng(12).normal(size=(6, 1, 32)).astype("float32")}
    many = build(program, data, tmp_path, 20, target=FewRows(load_config("tiny")))
    assert [row.rows for row in many.manifest.batched] == [5, 2]
    assert len([layer for layer in many.manifest.layers if layer.operator == "accel.dense"]) == 3


def test_how_calls_are_grouped() -> None:
    """The largest form waits to be filled; fewer calls take the forms of least cycles, with fewest rows to spare."""
    batch = Batch((Form("f_x8", 8, 40), Form("f_x4", 4, 24), Form("f", 1, 10)))

    def found(count: int) -> list[tuple[str, int]]:
        return [(group.form.name, group.count) for group in batch.groups(count)]

    assert [found(count) for count in (1, 2, 3)] == [[("f", 1)], [("f", 1)] * 2, [("f_x4", 3)]]
    assert sorted(found(5)) == [("f", 1), ("f_x4", 4)] and found(6) == [("f_x8", 6)]
    assert [found(count) for count in (8, 9, 24)] == [[("f_x8", 8)], [("f_x8", 8)], [("f_x8", 8)] * 3]


@given(st.integers(1, 60), st.lists(st.tuples(st.integers(2, 40), st.integers(1, 500)), min_size=1, max_size=4))
def test_no_other_forms_take_fewer_cycles(waiting: int, sizes: list[tuple[int, int]]) -> None:
    forms = (*(Form(f"f_{rows}", rows, cycles) for rows, cycles in sorted(sizes, reverse=True)), Form("f", 1, 60))
    batch = Batch(forms)
    waiting %= batch.rows
    groups = batch.groups(waiting)
    assert sum(group.count for group in groups) == waiting
    assert all(0 < group.count <= group.form.rows for group in groups)

    @cache
    def least(left: int) -> int:
        return min((form.cycles + least(left - form.rows) for form in forms), default=0) if left > 0 else 0

    assert sum(group.form.cycles for group in groups) == least(waiting)


def test_rows_are_joined_and_taken_apart() -> None:
    calls = [[np.full((1, 2), k, np.int8), np.full((1, 3), -k, np.float32)] for k in (1, 2)]
    left, right = joined_rows(calls, 4)
    assert left.tolist() == [[1, 1], [2, 2], [0, 0], [0, 0]] and left.dtype == np.int8
    assert right.shape == (4, 3) and right.dtype == np.float32
    assert row_of((left, (right,)), 1)[1][0].tolist() == [[-2, -2, -2]]


def test_calls_must_be_one_at_least() -> None:
    with pytest.raises(InputError, match="batch_calls must be at least 1, not 0"):
        CompileOptions(batch_calls=0)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rows": 3}, "must take and give 3 rows, at least 2, where piece_0_1 has one"),
        ({"rows": 1}, "must take and give 1 rows, at least 2"),
        ({"form": "piece_0_1"}, "batched form piece_0_1 must take and give 4 rows"),
        ({"form": "other"}, "batched form other must have a function other"),
        ({"function": "host_0"}, "must take and give 4 rows, at least 2, where host_0 has one"),
    ],
)
def test_a_form_of_other_rows_is_refused(change: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    program = recurrent.newton()
    data = {"x": 3 * np.random.default_rng(12).normal(size=(6, 1, 32)).astype("float32")}
    many = build(program, data, tmp_path, 4, accelerate=False)
    row = json.loads((many.path / "manifest.json").read_text())
    row["batched"][0] |= change
    (many.path / "manifest.json").write_bytes(manifest_bytes(manifest_from_json(row)))
    with pytest.raises(ArtifactError, match=sentence):
        load_artifact(many.path, trust=True)
