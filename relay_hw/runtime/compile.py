"""The walk of a model: import, simplify, quantize, partition, tensorize, and a build folder at the end.

In: a Relay module, a configuration, a strategy, calibration data. Out: `CompiledModel`, which saves itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tensorize
from accel import durable
from accel.isa.config import AccelConfig, load_config
from accel.sim.memory import memory_model
from relay_hw.analysis.products import count_products
from relay_hw.backend.buffers import plan_buffers
from relay_hw.backend.flat import FlatFunction, nested
from relay_hw.backend.store import ConstantPool, flat_to_json
from relay_hw.backend.tvm.target import HostTarget, read_host
from relay_hw.errors import InputError
from relay_hw.ir.expr import Constant, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import substitute
from relay_hw.limits import DEFAULT as USUAL_LIMITS
from relay_hw.limits import Limits
from relay_hw.quantize import Strategy, find_strategy, strategy_values
from relay_hw.quantize.finite import check_constants
from relay_hw.quantize.held_back import Kept, realize_checked
from relay_hw.quantize.plan import RULES
from relay_hw.quantize.prequantized import is_prequantized, realize_prequantized
from relay_hw.quantize.recipes import FLOAT
from relay_hw.report import report_files
from relay_hw.runtime.artifact import WEIGHTS, Artifact, load_artifact, write_artifact
from relay_hw.runtime.board import on_board
from relay_hw.runtime.calls import Caller, Calls, outside
from relay_hw.runtime.clock import STANDARD, target_of
from relay_hw.runtime.holding import Footprints
from relay_hw.runtime.hosts import compiled_by_tvm, flat_functions
from relay_hw.runtime.layers import layer_rows, with_kept
from relay_hw.runtime.manifest import AccelFunction, HostLibrary, LayerInfo, Manifest, PortInfo, TensorInfo
from relay_hw.runtime.ports import constant_inputs, inputs_of, outputs_of, single_samples, with_batch
from relay_hw.runtime.prices import Compiled, layer_prices, needs_prices
from relay_hw.runtime.regions import Builder
from relay_hw.runtime.static_report import HOST_MEMORY, static_report
from relay_hw.runtime.steady import steady
from relay_hw.runtime.tune import Tuner
from relay_hw.runtime.watch import watched
from relay_hw.runtime.widths import no_gain
from relay_hw.text import print_module
from relay_hw.transform.graph import shape_of
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.one_sample import IMAGE_AXES, OneSample, one_sample
from relay_hw.transform.partition import partition_records
from relay_hw.transform.pipelines import partition_pipeline, simplify_pipeline
from tensorize.refine import Refiner
from tensorize.schedule import Chooser
from tensorize.target import Target

Progress = Callable[[str], None]
Calibration = Mapping[str, NDArray[Any]]
STAGES = ("imported", "simplified", "quantized", "partitioned")
RESIDENT = ("auto", "off")
# The accelerator of programs that are made for none by name.
DEFAULT = "default"
# The name of the strategy of a model that came with its own integers.
PREQUANTIZED = "prequantized"
NUMPY = "numpy"
HOST_ONLY = "the build was asked to leave the accelerator out: compile without --no-accel"


@dataclass(frozen=True, slots=True, eq=False)
class CompiledModel:
    """A model after the walk, in memory. `stages`: the module after each step; `segments`: one program a region.

    `kept`: layers that stayed float because their integers lost the signal; `warnings`: what looks like a mistake;
    `notes`: what the strategy's training brought, and which of its widths bring nothing here.
    """

    name: str
    config: AccelConfig
    strategy: Strategy
    host_target: HostTarget | None
    stages: Mapping[str, IRModule]
    segments: Mapping[str, tensorize.Segment]
    functions: Mapping[str, FlatFunction]
    main: FlatFunction
    layers: tuple[LayerInfo, ...]
    memory_model: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    caller: Caller
    calls: Calls
    board: str | None = None
    kept: tuple[Kept, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def host_functions(self) -> tuple[FlatFunction, ...]:
        """Host functions that TVM compiles; what they quantize is among their results."""
        functions = compiled_by_tvm(self.stages[STAGES[-1]], self.functions)
        shown = watched({function.name: function for function in functions}, self.layers)
        return tuple(shown[f.name].function if f.name in shown else f for f in functions)

    def _buffers(self) -> dict[str, dict[str, int]]:
        """Bytes that one run of each function needs for what its segments give to one another, and without reuse."""
        segments = {row.function for row in self.layers}
        whole = outside(self.main, self.functions, segments)
        plans = [(f"{name} {k}" if k else name, plan_buffers(inner, segments))
                 for name, function in whole.items() for k, inner in enumerate(nested(function))]  # fmt: skip
        return {name: {"bytes": plan.size, "unshared": plan.unshared} for name, plan in plans if plan.size}

    def _reload_cycles(self) -> int:
        """Cycles of the launches of an inference that load resident constants again."""
        programs = {name: segment.program for name, segment in self.segments.items()}
        state = steady(Footprints(self.config), programs, self.calls.order)
        return state.reload_cycles(self.config, programs, memory_model(self.memory_model))

    def save(self, path: str | Path) -> Artifact:
        """Write the build folder `path`, whole or not at all, and read it back. Raises InputError, UnsupportedError."""
        pool = ConstantPool()
        functions = {name: flat_to_json(function, pool) for name, function in self.functions.items()}
        main = flat_to_json(self.main, pool)
        programs = _program_names(tuple(self.segments))
        stages = {f"{k}_{name}.relay": print_module(mod) for k, (name, mod) in enumerate(self.stages.items())}
        manifest = Manifest(
            model=self.name,
            config=self.config,
            strategy=strategy_values(self.strategy),
            inputs=self.inputs,
            outputs=self.outputs,
            accel=tuple(_accel_function(name, programs[name], segment) for name, segment in self.segments.items()),
            layers=self.layers,
            main=main,
            functions=functions,
            memory_model=self.memory_model,
            board=self.board,
            calls=self.calls.order,
            calls_from=self.calls.source.value,
            reload_cycles=self._reload_cycles(),
            stages=tuple(stages),
            memory={name: _memory_map(segment) for name, segment in self.segments.items()}
            | {HOST_MEMORY: self._buffers()},
        )
        files = {programs[name]: segment.program.to_bytes() for name, segment in self.segments.items()}
        files |= {WEIGHTS: bytes(pool)} | {name: text.encode() for name, text in stages.items()}
        files |= report_files(static_report(manifest))
        host, target = self.host_functions, self.host_target
        build = (lambda folder: _with_library(manifest, host, target, folder)) if host and target else None
        write_artifact(Path(path), manifest, files, build)
        return load_artifact(path, trust=True)


def compile_model(
    mod: IRModule,
    params: Mapping[str, NDArray[Any]] | None = None,
    config: AccelConfig | str | None = None,
    strategy: Strategy | str = "int8",
    calibration: Calibration | None = None,
    host_target: HostTarget | str = "llvm",
    name: str = "model",
    progress: Progress | None = None,
    resident: str = "auto",
    tune: float = 0,
    cache: Path | None = None,
    quantized: IRModule | None = None,
    accelerate: bool = True,
    memory: str | None = None,
    board: str | None = None,
    limits: Limits = USUAL_LIMITS,
) -> CompiledModel:
    """Walk a float module to programs. `params` are bound as constants; `calibration`: inputs by name, samples first.

    A module with operators of the QNN dialect brings its own integers: no strategy applies, no data is needed.

    `host_target`: what host functions are compiled for, as `relay_hw.backend.tvm.target` reads it; `numpy`: nothing.
    `strategy`: `float` leaves the module as it is, so that all of it runs on the host.
    `resident`: "auto" lets weights stay on the device between launches where that makes them faster, "off" never.
    `tune`: seconds to search for faster tiles by the cycle simulator; what was found before is in `cache` (the user's).
    `accelerate`: False keeps every operator on the host, and the build needs no device.
    `config`: the accelerator, `default` unless another is named; `memory`: name of the memory model that programs are
    made for, `standard` by default. `board`: takes both from a board, and another configuration if it is named.
    `quantized`: what `quantize` made of `mod` by this strategy, where it is there already. `limits`: of its layers.

    Raises RelayHwError, AccelError: each with one sentence.
    """
    tell = progress or (lambda _message: None)
    accel, memory = _made_for(config, memory, board)
    is_float = strategy == FLOAT
    plan = Strategy(FLOAT) if is_float else find_strategy(strategy)
    host = None if host_target == NUMPY else read_host(host_target)
    if resident not in RESIDENT:
        raise InputError(f"resident must be one of {', '.join(RESIDENT)}, not {resident}")
    target = target_of(accel, memory_model(memory))
    plan = replace(plan, multiplier_bits=min(plan.multiplier_bits, accel.multiplier_bits))
    _check_entry(mod)

    imported = InferType()(bind_params(mod, params or {}))
    tell("simplifying")
    found = one_sample(imported) if accelerate and not is_float and quantized is None else None
    split = found if isinstance(found, OneSample) else None
    single = imported if split is None else split.mod
    if split is not None and calibration is not None:
        calibration = single_samples(with_batch(inputs_of(single), split.inputs, split.batch), calibration)
    simplified = simplify_pipeline()(single)
    if accelerate and not is_float:
        layers = sum(count_products(function.body) for function in simplified.functions.values())
        limits.check("layers", f"the layers of {name}", layers)
    if is_float:
        quantized = simplified
    else:
        check_constants(imported)
    kept: tuple[Kept, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    if quantized is None and is_prequantized(single):
        tell("reading the integers of the model")
        plan, quantized = replace(plan, name=PREQUANTIZED), realize_prequantized(single, plan.multiplier_bits)
    if quantized is None:
        tell("quantizing")
        cost = None
        if accelerate and needs_prices(plan):
            tell("timing layers at each width")
            build = partial(timed_layers, mod=simplified, config=accel, memory=memory, resident=resident)
            cost = layer_prices(simplified, plan, calibration, build)
        checked = realize_checked(simplified, plan, calibration, progress=_samples_of("calibrating", tell), cost=cost)
        quantized, kept, warnings = checked.realized.mod, checked.kept, checked.warnings
        wider = no_gain(plan, accel) if accelerate else ""
        notes = (*checked.realized.notes, *([wider] if wider else []))
        plan = replace(plan, layers=checked.realized.strategy.layers)
    tell("partitioning")
    legal = (
        partial(_why_not, config=target, mixes=found if isinstance(found, str) else "") if accelerate else _host_only
    )
    partitioned = partition_pipeline(legal, None if is_float else RULES)(quantized)
    if not accelerate:
        partitioned = _reasoned(partitioned, HOST_ONLY)
    functions = flat_functions(partitioned)
    others = {n: f for n, f in functions.items() if n != "main"}
    on_device = accel_functions(partitioned)
    caller = Caller(functions["main"], others, _in_segments(partitioned), tuple(on_device), split.batch if split else 1)
    inputs, outputs = inputs_of(quantized, calibration), outputs_of(mod, quantized["main"])
    calls = caller.calls(inputs, calibration)
    builder = Builder(target, memory_model(memory), _choosers(on_device, target, tune, cache, tell), tell)
    segments = builder.segments(on_device, resident == "auto", calls.order)

    stages: dict[str, IRModule] = dict(zip(STAGES, (imported, simplified, quantized, partitioned), strict=True))
    layers = with_kept(layer_rows(partitioned, segments, accel), kept)
    return CompiledModel(
        name=name,
        config=accel,
        strategy=plan,
        host_target=host,
        stages=stages,
        segments=segments,
        functions=others,
        main=functions["main"],
        layers=layers,
        memory_model=memory,
        board=board,
        inputs=with_batch(inputs, split.inputs, split.batch) if split else inputs,
        outputs=with_batch(outputs, split.outputs, split.batch) if split else outputs,
        caller=caller,
        calls=calls,
        kept=kept,
        warnings=(*warnings, *constant_inputs(inputs)),
        notes=notes,
    )


def timed_layers(
    quantized: IRModule, mod: IRModule, config: AccelConfig, memory: str, resident: str = "auto"
) -> Compiled:
    """Layers of `quantized`, which was made of `mod`, with their cycles, and the calls of an inference."""
    built = compile_model(mod, config=config, host_target=NUMPY, resident=resident, memory=memory, quantized=quantized)
    return built.layers, built.calls.order


def _made_for(config: AccelConfig | str | None, memory: str | None, board: str | None) -> tuple[AccelConfig, str]:
    """The accelerator, and the name of the memory model behind it."""
    if board is None:
        return load_config(config or DEFAULT) if not isinstance(config, AccelConfig) else config, memory or STANDARD
    if memory is not None:
        raise InputError(f"memory must be what board {board} has, not {memory}: leave one of them out")
    place = on_board(board, config.name if isinstance(config, AccelConfig) else config)
    return config if isinstance(config, AccelConfig) else load_config(place.config), place.memory


def _in_segments(partitioned: IRModule) -> frozenset[str]:
    """Functions that `main` of a partitioned module calls for its layers, on the device or on the host."""
    return frozenset(record.function for record in partition_records(partitioned))


def _choosers(
    functions: Mapping[str, Function], target: Target, tune: float, cache: Path | None, tell: Progress
) -> list[Chooser]:
    """Who chooses tiles: the closer look, and a search of `tune` seconds."""
    if not tune:
        return [Refiner()]
    tuner = Tuner(target, cache)
    tuner.search(functions.values(), tune, tell)
    return [Refiner(), tuner]


def bind_params(mod: IRModule, params: Mapping[str, NDArray[Any]]) -> IRModule:
    """`mod` with the parameters of `main` that `params` names turned into constants. Raises InputError."""
    main = mod["main"]
    by_name = {var.name_hint: var for var in main.params}
    for name in params:
        if name not in by_name:
            raise InputError(f"parameter {name} must be one of {', '.join(by_name) or '(none)'}")
    values = {by_name[name]: Constant(np.asarray(value), span=by_name[name].span) for name, value in params.items()}
    if not values:
        return mod
    rest = [var for var in main.params if var not in values]
    return mod.with_functions({"main": Function(rest, substitute(main.body, values), attrs=main.attrs, span=main.span)})


def _reasoned(mod: IRModule, reason: str) -> IRModule:
    """A partitioned module whose operators all stay on the host for one reason."""
    records = tuple(replace(row, reason=reason) for row in partition_records(mod))
    return replace(mod, attrs={**mod.attrs, "partition": records})


def _host_only(_composite: Function) -> str:
    return HOST_ONLY


def _why_not(composite: Function, config: Target, mixes: str) -> str | None:
    """Why the accelerator cannot run a composite. `mixes`: why samples of a batch cannot run one by one."""
    reason = tensorize.why_not(composite, config)
    is_batch = any(len(shape := shape_of(var) or ()) == IMAGE_AXES and shape[0] > 1 for var in composite.params)
    return f"{reason}; {mixes}" if reason and mixes and is_batch else reason


def _check_entry(mod: IRModule) -> None:
    if "main" not in mod.functions:
        raise InputError(f"the module must have a function @main, not only {', '.join(mod.functions) or 'nothing'}")


def accel_functions(mod: IRModule) -> dict[str, Function]:
    """Functions of a partitioned module that run on the accelerator, in order."""
    return {name: f for name, f in mod.functions.items() if f.attrs.get("Compiler") == "accel"}


def _samples_of(message: str, tell: Progress) -> Callable[[int, int], None]:
    return lambda done, total: tell(f"{message}: sample {done} of {total}")


def _program_names(functions: tuple[str, ...]) -> dict[str, str]:
    if len(functions) == 1:
        return {functions[0]: "program.bin"}
    return {name: f"program_{k}.bin" for k, name in enumerate(functions)}


def _accel_function(name: str, program: str, segment: tensorize.Segment) -> AccelFunction:
    def ports(slots: Any) -> tuple[PortInfo, ...]:
        return tuple(PortInfo(slot.name, tuple(slot.shape)) for slot in slots)

    return AccelFunction(name, program, ports(segment.inputs), ports(segment.outputs))


def _memory_map(segment: tensorize.Segment) -> dict[str, Any]:
    program = segment.program
    sections = [{"name": s.name, "kind": s.kind.value, "offset": s.offset, "bytes": s.size} for s in program.sections]
    return {"window_bytes": program.window_bytes, "sections": sections}


def _with_library(manifest: Manifest, host: tuple[FlatFunction, ...], target: HostTarget, folder: Path) -> Manifest:
    """Compile the host functions into `folder`, and record what loading them needs."""
    from relay_hw.backend.tvm import build_library, library_suffix

    plain = folder / f"host{library_suffix(target)}"
    built = build_library(host, plain, target)
    # The system loads a path once a process: another library at the same path would not be seen.
    file = durable.rename(plain, folder / f"host.{durable.file_hash(plain)[:8]}{plain.suffix}")
    pool = ConstantPool()
    packed = {name: flat_to_json(function, pool) for name, function in built.packed.items()}
    library = HostLibrary(file.name, str(target), built.cpu, built.functions, packed)
    layers = tuple(_note_numpy(row, built.left_to_numpy.get(row.function, ())) for row in manifest.layers)
    return replace(manifest, library=library, layers=layers)


def _note_numpy(row: LayerInfo, left: tuple[str, ...]) -> LayerInfo:
    """Say so where TVM could not take an operator of a host function."""
    if row.where == "accel" or row.operator not in left:
        return row
    return replace(row, reason=f"{row.reason}; by numpy, as Relax has no such {row.operator}")
