"""Compiles a model: simplify, quantize, partition, tensorize, and save as a build folder.

In: a Relay module, a configuration, a strategy, calibration data. Out: `CompiledModel`, which saves itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw import tensorize
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.analysis.products import count_products
from relay_hw.backend.buffers import plan_buffers
from relay_hw.backend.flat import FlatFunction, nested
from relay_hw.backend.store import ConstantPool, flat_to_json
from relay_hw.backend.tvm.target import NUMPY, HostTarget
from relay_hw.errors import InputError
from relay_hw.ir.expr import Constant, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import substitute
from relay_hw.quantize import Strategy, strategy_values
from relay_hw.quantize.finite import check_constants
from relay_hw.quantize.held_back import Kept
from relay_hw.quantize.report import LayerNoise
from relay_hw.quantize.rules import RULES
from relay_hw.report import Network, Profile, report_files
from relay_hw.runtime.artifact import NETWORK, WEIGHTS, Artifact, load_artifact, write_artifact
from relay_hw.runtime.batched import Partitioned, partition
from relay_hw.runtime.calls import Caller, Calls, outside
from relay_hw.runtime.first_report import first_report
from relay_hw.runtime.hosts import compiled_by_tvm, left_to_numpy
from relay_hw.runtime.kept import with_kept
from relay_hw.runtime.libraries import with_libraries
from relay_hw.runtime.manifest import Manifest, TensorInfo
from relay_hw.runtime.network import lines_by_span, network_of
from relay_hw.runtime.options import USUAL, CompileOptions
from relay_hw.runtime.placed_numbers import Quantizer
from relay_hw.runtime.placement import is_placed, place
from relay_hw.runtime.ports import constant_inputs, inputs_of, outputs_of, single_samples, with_batch
from relay_hw.runtime.prices import Compile, Compiled
from relay_hw.runtime.quantized import Quantized, quantize_network, settle
from relay_hw.runtime.static_report import HOST_MEMORY, static_report
from relay_hw.runtime.watch import watched
from relay_hw.support.progress import SILENT, Progress
from relay_hw.target.accel.rules import NAME as ACCEL
from relay_hw.target.accel.target import AccelTarget, segments_of
from relay_hw.target.base import PartitionRules, Port, Region, Request, Target
from relay_hw.target.batch import BatchRules
from relay_hw.target.host_only import HostOnly
from relay_hw.target.partition import partition_records
from relay_hw.target.records import LayerInfo, PortInfo, RegionInfo
from relay_hw.text import print_module, print_with_lines
from relay_hw.transform.batch_fragments import BatchedForm
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.one_sample import OneSample, one_sample
from relay_hw.transform.pipelines import simplify_pipeline
from relay_hw.transform.prefix_masks import check_prefixes, could_be_lengths, prefix_masks

Calibration = Mapping[str, NDArray[Any]]
STAGES = ("imported", "simplified", "quantized", "partitioned")
HOST_ONLY = "the build was compiled with --no-accel: compile it without"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CompiledModel:
    """A compiled model in memory. `stages`: the module after each step; `regions`: one program each.

    `hosts`: what each host function that is worth it is compiled for.

    `kept`: layers that stayed float because their integers lost the signal; `noise`: how far the others are from float
    on samples that were held back from calibration; `warnings`: what looks like a mistake;
    `notes`: what the strategy's training brought, which of its widths bring nothing here, what is missing to be faster.
    """

    name: str
    target: Target
    strategy: Strategy
    hosts: Mapping[str, HostTarget]
    stages: Mapping[str, IRModule]
    regions: Mapping[str, Region]
    functions: Mapping[str, FlatFunction]
    main: FlatFunction
    layers: tuple[LayerInfo, ...]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    caller: Caller
    calls: Calls
    kept: tuple[Kept, ...] = ()
    noise: tuple[LayerNoise, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    batched: tuple[BatchedForm, ...] = ()

    @property
    def config(self) -> AccelConfig:
        """The accelerator configuration. Raises InputError for another target than accel."""
        return accel_of(self.target).config

    @property
    def memory_model(self) -> str:
        """The name of the memory model that programs of target accel are optimised for."""
        return accel_of(self.target).memory

    @property
    def segments(self) -> Mapping[str, tensorize.Segment]:
        """Compiled regions of target accel."""
        return segments_of(self.regions)

    @property
    def host_functions(self) -> tuple[FlatFunction, ...]:
        """Host functions that TVM compiles; they also return the floats that they quantize."""
        functions = [self.functions[name] for name in self.hosts]
        shown = watched({function.name: function for function in functions}, self.layers)
        return tuple(shown[f.name].function if f.name in shown else f for f in functions)

    def _libraries(self) -> dict[HostTarget, list[FlatFunction]]:
        """What is compiled for each processor or GPU."""
        found: dict[HostTarget, list[FlatFunction]] = {}
        for function in self.host_functions:
            if self.hosts[function.name].kind != NUMPY:
                found.setdefault(self.hosts[function.name], []).append(function)
        return found

    def _buffers(self) -> dict[str, dict[str, int]]:
        """Bytes of buffers between the segments of each function, with and without reuse."""
        segments = {row.function for row in self.layers}
        whole = outside(self.main, self.functions, segments)
        plans = [(f"{name} {k}" if k else name, plan_buffers(inner, segments))
                 for name, function in whole.items() for k, inner in enumerate(nested(function))]  # fmt: skip
        return {name: {"bytes": plan.size, "unshared": plan.unshared} for name, plan in plans if plan.size}

    def _manifest(self, pool: ConstantPool) -> Manifest:
        """The manifest of a build without its stages; constants go into `pool`."""
        programs = _program_names(tuple(self.regions))
        facts = self.target.facts(self.regions, self.calls.order)
        return Manifest(
            model=self.name,
            target=self.target.name,
            variant=facts.variant,
            config=facts.config,
            strategy=strategy_values(self.strategy),
            inputs=self.inputs,
            outputs=self.outputs,
            regions=tuple(_region_info(name, programs[name], region) for name, region in self.regions.items()),
            layers=self.layers,
            functions={name: flat_to_json(function, pool) for name, function in self.functions.items()},
            main=flat_to_json(self.main, pool),
            memory_model=facts.memory_model,
            board=facts.board,
            calls=self.calls.order,
            calls_from=self.calls.source.value,
            reload_cycles=facts.reload_cycles,
            stages=(),
            memory={**facts.memory, HOST_MEMORY: self._buffers()},
            proofs=facts.proofs,
            batched=self.batched,
        )

    def __repr__(self) -> str:
        return f"<CompiledModel {self.name}>"

    def _repr_html_(self) -> str:
        """Rich display in notebooks: where each operator runs, with the cycles that the compiler counted."""
        return static_report(self._manifest(ConstantPool()))._repr_html_()

    @property
    def report(self) -> Profile:
        """The report of the launches that the compiler timed, with the network, as a build's report.html shows it."""
        manifest = self._manifest(ConstantPool())
        _, lines = print_with_lines(self.stages[STAGES[0]])
        return first_report(manifest, self.segments, self._network(lines))

    def _network(self, lines: Mapping[Expr, tuple[int, str]]) -> Network:
        """The operators with their operands; `lines`: of the imported module."""
        return network_of(lines_by_span(lines), self.stages[STAGES[-1]], self.layers, self.noise)

    def save(self, path: str | Path) -> Artifact:
        """Write the build folder `path`, whole or not at all, and read it back. Raises InputError, UnsupportedError."""
        pool = ConstantPool()
        manifest = self._manifest(pool)
        programs = _program_names(tuple(self.regions))
        imported, lines = print_with_lines(self.stages[STAGES[0]])
        texts = [imported, *(print_module(self.stages[name]) for name in STAGES[1:])]
        stages = {f"{k}_{name}.relay": text for k, (name, text) in enumerate(zip(STAGES, texts, strict=True))}
        network = self._network(lines)
        manifest = replace(manifest, stages=tuple(stages))
        files = {programs[name]: region.to_bytes() for name, region in self.regions.items()}
        files |= {WEIGHTS: bytes(pool)} | {name: text.encode() for name, text in stages.items()}
        files[NETWORK] = json.dumps(asdict(network)).encode()
        files |= report_files(first_report(manifest, self.segments, network))
        parts = self._libraries()
        build = (lambda folder: with_libraries(manifest, parts, folder)) if parts else None
        write_artifact(Path(path), manifest, files, build)
        return load_artifact(path, trust=True)


def compile_model(
    mod: IRModule,
    options: CompileOptions = USUAL,
    *,
    params: Mapping[str, NDArray[Any]] | None = None,
    calibration: Calibration | None = None,
    quantized: IRModule | None = None,
    progress: Progress = SILENT,
) -> CompiledModel:
    """Compile a float module to programs, as `options` say.

    `params` are bound as constants; `calibration`: inputs by name, samples first. A module with operators of the QNN
    dialect brings its own integers: no strategy applies, no data is needed.
    `quantized`: what `quantize` made of `mod` by the strategy, where it is there already.

    Raises RelayHwError, AccelError: each with one sentence.
    """
    machine = options.find_target()
    _check_entry(mod)
    imported = InferType()(bind_params(mod, params or {}))
    if quantized is None and is_placed(imported, options):
        divided = _placed(imported, options, machine, calibration, progress)
    else:
        divided = _quantized(imported, options, machine, quantized, calibration, progress)
    return _assembled(mod, imported, divided, options, progress)


@dataclass(frozen=True, slots=True, eq=False)
class _Divided:
    """A network divided between host and target. `split`: how it became one that computes one sample of a batch;
    `hosts`: as in `CompiledModel`; `notes`: what is missing to be faster, empty sentences among them."""

    target: Target
    simplified: IRModule
    made: Quantized
    parts: Partitioned
    hosts: Mapping[str, HostTarget]
    split: OneSample | None = None
    calibration: Calibration | None = None
    notes: tuple[str, ...] = ()


def _placed(
    imported: IRModule,
    options: CompileOptions,
    machine: Target,
    calibration: Calibration | None,
    progress: Progress,
) -> _Divided:
    """A program among its devices; what is on the target in integers."""

    def price(mod: IRModule) -> Compile:
        return partial(timed_layers, mod=mod, target=machine, resident=options.resident)

    settled = settle(options.find_strategy(), machine, options.accelerate)
    placement = place(imported, options, machine, Quantizer(settled, calibration, price, progress))
    made, parts = placement.made, placement.partitioned
    return _Divided(machine, placement.planned, made, parts, placement.hosts, calibration=calibration)


def _quantized(
    imported: IRModule,
    options: CompileOptions,
    machine: Target,
    quantized: IRModule | None,
    calibration: Calibration | None,
    progress: Progress,
) -> _Divided:
    """A network in integers, or in float where that is the strategy, and what the target takes of it."""
    host, is_float, accelerate = options.find_host(), options.is_float, options.accelerate
    settled = settle(options.find_strategy(), machine, accelerate)
    progress.started("simplifying")
    found = one_sample(imported) if accelerate and not is_float and quantized is None else None
    split = found if isinstance(found, OneSample) else None
    single = imported if split is None else split.mod
    if split is not None and calibration is not None:
        calibration = single_samples(with_batch(inputs_of(single), split.inputs, split.batch), calibration)
    masks = options.prefix_masks
    for name in masks:
        if calibration is not None and name in calibration:
            check_prefixes(name, np.asarray(calibration[name]))
    simplified = prefix_masks(simplify_pipeline()(single), masks)
    if accelerate and not is_float:
        layers = sum(count_products(function.body) for function in simplified.functions.values())
        options.limits.check("layers", f"the layers of {options.name}", layers)
    if not is_float:
        check_constants(imported)
    if quantized is None and not is_float:
        build = partial(timed_layers, mod=simplified, target=machine, resident=options.resident)
        made = quantize_network(single, simplified, settled, calibration, build, progress)
    else:
        made = Quantized(simplified if quantized is None else quantized, settled.strategy)
    progress.started("partitioning")
    takes: PartitionRules = machine if accelerate else HostOnly(HOST_ONLY)
    if isinstance(found, str):
        takes = BatchRules(takes, found)
    split_up = partition(made.mod, takes, None if is_float else RULES, options.batch_calls)
    functions = {function.name: host for function in compiled_by_tvm(split_up.mod, split_up.functions)}
    left = left_to_numpy(split_up.mod, split_up.functions)
    note = left if options.host_target is None and host.kind == NUMPY else ""
    masks_left = could_be_lengths(simplified, masks) if accelerate and not is_float else ""
    return _Divided(machine, simplified, made, split_up, functions, split, calibration, (note, masks_left))


def _assembled(
    mod: IRModule, imported: IRModule, divided: _Divided, options: CompileOptions, progress: Progress
) -> CompiledModel:
    """The model with programs for the target's part."""
    machine, made, split, calibration = divided.target, divided.made, divided.split, divided.calibration
    partitioned, functions = divided.parts.mod, divided.parts.functions
    others = {n: f for n, f in functions.items() if n != "main"}
    on_device = device_functions(partitioned, machine.name)
    caller = Caller(functions["main"], others, _in_segments(partitioned), tuple(on_device), split.batch if split else 1)
    inputs, outputs = inputs_of(made.mod, calibration), outputs_of(mod, made.mod["main"])
    inputs = tuple(replace(row, is_prefix=row.name in options.prefix_masks) for row in inputs)
    calls = caller.calls(inputs, calibration)
    resident = options.resident == "auto"
    # Forms, and what another sample may call, stay on the device as regions do that an inference launches once.
    of_forms = divided.parts.launched(on_device)
    calls = replace(calls, order=tuple(name for name in calls.order if name not in of_forms))
    called = frozenset(calls.order)
    launched = (*calls.order, *(name for name in on_device if name not in called))
    request = Request(launched, progress, resident, options.tune, options.cache, options.validate)
    regions = machine.compile(on_device, request) if on_device else {}

    stages: dict[str, IRModule] = dict(zip(STAGES, (imported, divided.simplified, made.mod, partitioned), strict=True))
    layers = with_kept(machine.layers(partition_records(partitioned), regions), made.kept)
    return CompiledModel(
        name=options.name,
        target=machine,
        strategy=made.strategy,
        hosts=divided.hosts,
        stages=stages,
        regions=regions,
        functions=others,
        main=functions["main"],
        layers=layers,
        inputs=with_batch(inputs, split.inputs, split.batch) if split else inputs,
        outputs=with_batch(outputs, split.outputs, split.batch) if split else outputs,
        caller=caller,
        calls=calls,
        kept=made.kept,
        noise=made.noise,
        warnings=(*made.warnings, *constant_inputs(inputs)),
        notes=(*made.notes, *filter(None, divided.notes)),
        batched=divided.parts.batched,
    )


def timed_layers(quantized: IRModule, mod: IRModule, target: Target, resident: str = "auto") -> Compiled:
    """Layers of `quantized`, which was made of `mod`, with their cycles, and the calls of an inference."""
    options = CompileOptions(target=target, host_target=NUMPY, resident=resident, validate=False)
    built = compile_model(mod, options, quantized=quantized)
    return built.layers, built.calls.order


def accel_of(target: Target) -> AccelTarget:
    """The target as AccelTarget. Raises InputError for another one."""
    if not isinstance(target, AccelTarget):
        raise InputError(f"the target must be {ACCEL}, not {target.name}: this is about its programs")
    return target


def _in_segments(partitioned: IRModule) -> frozenset[str]:
    """Functions that `main` of a partitioned module calls for its layers, on the device or on the host."""
    return frozenset(record.function for record in partition_records(partitioned))


def bind_params(mod: IRModule, params: Mapping[str, NDArray[Any]]) -> IRModule:
    """Turn the parameters of `main` that `params` has into constants. Raises InputError."""
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


def _check_entry(mod: IRModule) -> None:
    if "main" not in mod.functions:
        raise InputError(f"the module must have a function @main, not only {', '.join(mod.functions) or 'nothing'}")


def device_functions(mod: IRModule, target: str) -> dict[str, Function]:
    """Functions of a partitioned module that run on the target of this name, in order."""
    return {name: f for name, f in mod.functions.items() if f.attrs.get("Compiler") == target}


def _program_names(functions: tuple[str, ...]) -> dict[str, str]:
    if len(functions) == 1:
        return {functions[0]: "program.bin"}
    return {name: f"program_{k}.bin" for k, name in enumerate(functions)}


def _region_info(name: str, program: str, region: Region) -> RegionInfo:
    def ports(given: Sequence[Port]) -> tuple[PortInfo, ...]:
        return tuple(PortInfo(port.name, tuple(port.shape)) for port in given)

    return RegionInfo(name, program, ports(region.inputs), ports(region.outputs))
