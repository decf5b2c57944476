"""A target made of what a script registered: pattern table, operators, code generator, loader.

In: composites of a network. Out: runtime modules of the code generator, as bytes in a build; and what they compute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from relay_hw.compat.tvm.byoc.known import GENERATOR, LOADER, get_global_func, get_pattern_table, supported_by
from relay_hw.compat.tvm.byoc.regions import single, without_singles
from relay_hw.compat.tvm.nd import NDArray, unwrap
from relay_hw.dataflow_pattern.grouping import outside_fused
from relay_hw.errors import ArtifactError, InputError
from relay_hw.ir.expr import Call, Expr, Function, Op
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TupleType, Type
from relay_hw.ir.visit import copy_with, rebuild
from relay_hw.target.base import Answer, Measured, QuantizerRules, Request, TensorPort
from relay_hw.target.records import Facts, LayerInfo, PartitionRecord, RegionInfo, host_row
from relay_hw.transform import InferType, MergeComposite, Pass, Pipeline
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import typed

DEVICE: Final = "runtime"
_MULTIPLIER_BITS: Final = 31
_KIND_ENDS: Final = b"\n"


class ExternModule(Protocol):
    """The result of a code generator for a function, or of a loader for its bytes."""

    @property
    def type_key(self) -> str:
        """`runtime.module.loadbinary_KEY` reads its bytes."""
        ...

    def save_to_bytes(self) -> bytes:
        """The bytes that the loader reads."""
        ...

    def get_function(self, name: str) -> Callable[..., Any]:
        """From arrays, one for each input of the function of this name, to its result, a tuple of several."""
        ...


@dataclass(frozen=True, slots=True)
class ExternRegion:
    """See `relay_hw.target.Region`."""

    inputs: tuple[TensorPort, ...]
    outputs: tuple[TensorPort, ...]
    program: bytes

    def to_bytes(self) -> bytes:
        """The kind of module, and its bytes."""
        return self.program


class _Singles(FunctionPass):
    """Operators that the compiler takes by themselves become composites."""

    name = "single-operators"

    def __init__(self, compiler: str) -> None:
        self._compiler = compiler

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        supported, memo = supported_by(self._compiler), dict[Expr, Expr]()
        for node in outside_fused(function):
            new = node if isinstance(node, Function) and node.body not in memo else rebuild(node, memo)
            new = typed(new, node.checked_type)
            answer = supported.get(node.op.name, False) if isinstance(node, Call) and isinstance(node.op, Op) else False
            taken = answer(node) if callable(answer) and isinstance(node, Call) else bool(answer)
            memo[node] = single(new, self._compiler) if taken else new
        new = memo[function]
        assert isinstance(new, Function)
        return new


@dataclass(frozen=True, slots=True)
class ExternTarget:
    """See `relay_hw.target.Target`."""

    name: str
    anchors: frozenset[str] = frozenset()
    multiplier_bits: int = _MULTIPLIER_BITS
    devices: tuple[str, ...] = (DEVICE,)

    def composites(self) -> Pass:
        """The pass that groups matches of the pattern table, then single operators."""
        patterns = MergeComposite(tuple(get_pattern_table(self.name) or ()))
        return Pipeline([patterns, InferType(), _Singles(self.name), InferType()])

    def why_not(self, composite: Function) -> str | None:
        """None: patterns and attributes have decided already."""
        return None

    def why_on_host(self, call: Call, rules: QuantizerRules) -> str:
        """The reason: no script registered the operator."""
        operator = call.op.name if isinstance(call.op, Op) else "this call"
        return f"no pattern and no attribute target.{self.name} takes {operator}"

    def takes_in(self, call: Call, composite: str) -> bool:
        """False: patterns are complete."""
        return False

    def compile(self, functions: Mapping[str, Function], request: Request) -> Mapping[str, ExternRegion]:
        """A module of the code generator for each function. Raises InputError."""
        return {name: self._region(name, function) for name, function in functions.items()}

    def _region(self, name: str, function: Function) -> ExternRegion:
        generate = get_global_func(f"{GENERATOR}{self.name}")
        assert generate is not None
        symbol = {"global_symbol": name, "Compiler": self.name, "Primitive": 1}
        plain = without_singles(function)
        made: ExternModule = generate(copy_with(plain, attrs={**plain.attrs, **symbol}))
        if get_global_func(f"{LOADER}{made.type_key}", allow_missing=True) is None:
            raise InputError(f"modules of {GENERATOR}{self.name} must have a loader: register {LOADER}{made.type_key}")
        program = made.type_key.encode() + _KIND_ENDS + made.save_to_bytes()
        return ExternRegion(_ports("input", [p.type for p in function.params]), _results(function.body.type), program)

    def layers(self, records: Sequence[PartitionRecord], regions: Mapping[str, Any]) -> tuple[LayerInfo, ...]:
        """Layer rows without times, which code generators do not know."""
        return tuple(map(host_row, records))

    def facts(self, regions: Mapping[str, Any], calls: Sequence[str]) -> Facts:
        """Facts of the only variant."""
        return Facts()

    def check(self, row: RegionInfo, program: bytes) -> None:
        """Raise ArtifactError unless a loader for the program is registered."""
        _load(row.name, program)

    def open(self, device: str, regions: Sequence[RegionInfo], programs: Mapping[str, bytes]) -> ExternSession:
        """The modules, ready to be called."""
        if device != DEVICE:
            raise InputError(f"device must be {DEVICE} for target {self.name}, not {device}")
        return ExternSession({name: _load(name, data).get_function(name) for name, data in programs.items()})


class ExternSession:
    """A `relay_hw.target.Session`: functions of runtime modules."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._functions = functions

    def settle(self, region: str) -> None:
        """Do nothing: the loader has made the module ready."""

    def run(self, region: str, samples: Iterable[Sequence[Any]]) -> Generator[Answer, None, None]:
        """The region on samples."""
        for arrays in samples:
            begin = time.perf_counter()
            value = unwrap(self._functions[region](*map(NDArray, arrays)))
            yield value, Measured(None, time.perf_counter() - begin)

    def repeats(self, calls: Sequence[str], loads: Mapping[int, str]) -> frozenset[int]:
        """No launches: nothing is loaded separately."""
        return frozenset()

    def close(self) -> None:
        """Do nothing: modules are garbage-collected."""


def make_target(name: str, variant: str = "") -> ExternTarget:
    """The target of a code generator; it has no variants. Raises InputError."""
    if variant:
        raise InputError(f"target {name} must have no configuration, not {variant}")
    return ExternTarget(name)


def _load(region: str, program: bytes) -> ExternModule:
    """The module in a program. Raises ArtifactError if there is none, or no loader for its kind."""
    kind, end, data = program.partition(_KIND_ENDS)
    loader = get_global_func(f"{LOADER}{kind.decode(errors='replace')}", allow_missing=True) if end else None
    if loader is None:
        raise ArtifactError(f"region {region} must be a module of a kind that a registered loader reads")
    return loader(data)


def _results(ty: Type) -> tuple[TensorPort, ...]:
    return _ports("output", ty.fields if isinstance(ty, TupleType) else [ty])


def _ports(name: str, types: Sequence[Type]) -> tuple[TensorPort, ...]:
    return tuple(TensorPort(f"{name}{k}", ty.static_shape) for k, ty in enumerate(types))  # type: ignore[attr-defined]
