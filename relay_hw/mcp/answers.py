"""What an assistant may ask of models and builds below one folder, each answer with where it comes from.

In: names of files relative to the folder. Out: JSON objects of at most 2 KB. Every figure is that of `relay-hw why`,
`profile` and `diff`: the exact engine of the cycle simulator, in steady state.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from relay_hw import __version__
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.errors import InputError
from relay_hw.mcp.bounded import bounded
from relay_hw.report import LayerRow, Report, utilisation
from relay_hw.report.difference import diff
from relay_hw.report.matching import Pair
from relay_hw.runtime.archive import Archive
from relay_hw.runtime.artifact import Artifact, load_artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.explanation import Explanation, Loss, Outcome, loss_text
from relay_hw.runtime.folder import MANIFEST
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.profile import timed_report
from relay_hw.runtime.why import explain
from relay_hw.support.names import one_of
from relay_hw.target.accel.changes import read_change
from relay_hw.target.partition import HOST

Json = Any
Answer = dict[str, Json]


class Answers:
    """The questions. `root`: the folder that names are relative to; nothing outside of it is read or written."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    @property
    def questions(self) -> tuple[Callable[..., Answer], ...]:
        """All of them, in the order in which a reader meets them."""
        return (self.list_files, self.compile, self.top_layers, self.why, self.what_if, self.diff, self.roofline,
                self.layer)  # fmt: skip

    def list_files(self) -> Answer:
        """List the models (.onnx, .relay), data (.npz) and builds of the folder."""
        paths = sorted(self._root.rglob("*"))
        builds = {path.parent for path in paths if path.name == MANIFEST}
        found: dict[str, list[str]] = {suffix: [] for suffix in (".onnx", ".relay", ".npz")}
        for path in paths:
            if path.suffix in found and builds.isdisjoint(path.parents):
                found[path.suffix].append(self._name(path))
        models = sorted(found[".onnx"] + found[".relay"])
        return bounded({"models": models, "data": found[".npz"], "builds": sorted(map(self._name, builds))})

    def compile(
        self, model: str, build: str, calibration: str | None = None, config: str = "default", strategy: str = "int8"
    ) -> Answer:
        """Compile a model for an accelerator configuration into the folder `build`.

        `calibration`: an .npz file with some samples by input name, which every strategy but float needs.
        """
        target = self._path(build)
        samples = None if calibration is None else Archive(self._path(calibration), "calibration data")
        read = load_model(self._path(model), samples=samples, untrusted=True)
        options = CompileOptions(config=config, strategy=strategy, name=read.name)
        compiled = compile_model(read.mod, options, params=read.params, calibration=samples)
        artifact = compiled.save(target)
        layers = artifact.manifest.layers
        host = [{"layer": row.name, "reason": row.reason} for row in layers if row.where == HOST]
        return self._answer(
            build, artifact, {"layers": len(layers), "on_host": host, "warnings": list(compiled.warnings)}
        )

    def top_layers(self, build: str, count: int = 8) -> Answer:
        """The layers that take most cycles, with what each loses most to."""
        artifact = self._build(build)
        report = timed_report(artifact)
        rows = sorted(report.layers, key=lambda row: -(row.cycles or 0))[: max(1, count)]
        found = {"cycles": report.cycles, "utilisation": report.utilisation}
        return self._answer(build, artifact, found | {"layers": [_layer(report, row) for row in rows]})

    def why(self, build: str) -> Answer:
        """Where cycles are lost, and which changes of the hardware save most, each timed exactly.

        `asked` is what what_if takes for a change.
        """
        artifact = self._build(build)
        found = explain(artifact)
        known = [one for one in found.outcomes if one.cycles is not None]
        helps = sorted((one for one in known if (one.cycles or 0) < found.cycles), key=lambda one: one.cycles or 0)
        row = {
            "cycles": found.cycles,
            "changes_that_help": [_change(one) for one in helps],
            "losses": [_loss(one) for one in found.losses],
            "bounds": [{"bound": bound.text, "cycles": bound.cycles} for bound in found.bounds],
        }
        return self._answer(build, artifact, row)

    def what_if(self, build: str, change: str) -> Answer:
        """Time the build on changed hardware, for instance "axi_data_bits=128,latency=50"."""
        artifact = self._build(build)
        memory = memory_model(artifact.manifest.memory_model)
        found = explain(artifact, changes=[read_change(change, artifact.config, memory)])
        rows = [_change(one) | {"effect": found.sentence(one), "more_by_cause": _effect(found, one)}
                for one in found.outcomes]  # fmt: skip
        return self._answer(build, artifact, {"cycles": found.cycles, "changes": rows})

    def diff(self, a: str, b: str) -> Answer:
        """Two builds side by side: layers matched, cycles gained, those that differ most first."""
        left, right = self._build(a), self._build(b)
        found = diff(timed_report(left), timed_report(right))
        pairs = sorted(found.pairs, key=lambda pair: -abs(pair.gained))
        row = {
            "cycles": dict(zip(("a", "b"), found.cycles, strict=True)),
            "gained": found.cycles[0] - found.cycles[1],
            "matched": len(found.matched),
            "of": len(found.pairs),
            "settings": [{"what": one.what, "a": one.before, "b": one.after} for one in found.settings],
            "layers": [_pair(pair) for pair in pairs],
        }
        return bounded({"from": [self._from(a, left), self._from(b, right)], **row})

    def roofline(self, build: str) -> Answer:
        """Least cycles that array, output stage and bus need, and the layers farthest from theirs."""
        artifact = self._build(build)
        report = timed_report(artifact)
        far = sorted(report.layers, key=lambda row: (row.roofline_cycles or 0) - (row.cycles or 0))
        bounds = [{"region": one.function, "array": one.array, "output_stage": one.output, "reads": one.reads,
                   "writes": one.writes, "cycles": one.cycles} for one in report.bounds]  # fmt: skip
        row = {
            "cycles": report.cycles,
            "roofline_cycles": report.roofline_cycles,
            "bounds": bounds,
            "layers": [{"layer": one.name, "cycles": one.cycles, "roofline_cycles": one.roofline_cycles} for one in far
                       if one.cycles],
        }  # fmt: skip
        return self._answer(build, artifact, row)

    def layer(self, build: str, name: str) -> Answer:
        """Everything about one layer: shape, tile, cycles by cause, bytes."""
        artifact = self._build(build)
        report = timed_report(artifact)
        rows = [row for row in report.layers if row.name == name]
        if not rows:
            raise InputError(one_of("layer", [row.name for row in report.layers], name))
        found = [
            _layer(report, row)
            | {"operator": row.operator, "shape": row.shape, "why": row.reason, "macs": row.macs}
            | {"roofline_cycles": row.roofline_cycles, "dram_bytes": row.traffic.total}
            | {"stalls": {str(cause): cycles for cause, cycles in row.stalls.items()}}
            for row in rows
        ]
        return self._answer(build, artifact, {"rows": found})

    def _answer(self, build: str, artifact: Artifact, row: Answer) -> Answer:
        return bounded({"from": self._from(build, artifact), **row})

    def _from(self, build: str, artifact: Artifact) -> Answer:
        """Where the figures of an answer come from."""
        manifest = artifact.manifest
        return {
            "build": build,
            "model": manifest.model,
            "config": manifest.sizes.name,
            "strategy": str(manifest.strategy["name"]),
            "memory": manifest.memory_model,
            "engine": f"cycle simulator of relay-hw {__version__}",
        }

    def _build(self, name: str) -> Artifact:
        """A build below the root, or the root where it is a build itself, as `list_files` names it."""
        is_root = (self._root / name).resolve() == self._root and (self._root / MANIFEST).is_file()
        artifact = load_artifact(self._root if is_root else self._path(name))
        artifact.manifest.check_accel()
        return artifact

    def _path(self, name: str) -> Path:
        """A file or folder below the root. Raises InputError for any other."""
        path = (self._root / name).resolve()
        if not path.is_relative_to(self._root) or path == self._root:
            raise InputError(f"a file must lie below the served folder, not at {name}")
        return path

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()


def _layer(report: Report, row: LayerRow) -> Answer:
    lost = max(row.stalls.items(), key=lambda item: item[1], default=None)
    return {
        "layer": row.name,
        "where": row.where,
        "cycles": row.cycles,
        "utilisation": utilisation(row.macs, row.cycles, report.macs_per_cycle),
        "loses_most_to": None if lost is None else {str(lost[0]): lost[1]},
    }


def _loss(loss: Loss) -> Answer:
    most_in = dict(loss.layers[:1])
    return {"cause": str(loss.cause), "cycles": loss.cycles, "what": loss_text(loss), "most_in": most_in}


def _change(outcome: Outcome) -> Answer:
    """A change with its cycles, or why it cannot be had."""
    row: Answer = {"change": outcome.change.text, "asked": outcome.change.asked, "cycles": outcome.cycles}
    return row | ({"reason": outcome.reason} if outcome.cycles is None else {"recompiled": outcome.change.recompiles})


def _effect(found: Explanation, outcome: Outcome) -> dict[str, int]:
    return {str(cause): cycles for cause, cycles in found.effect(outcome).items()}


def _pair(pair: Pair) -> Answer:
    changes = [f"{one.what}: {one.before} -> {one.after}" for one in pair.changes]
    return {"layer": pair.name, "a": pair.cycles[0], "b": pair.cycles[1], "gained": pair.gained, "changed": changes}
