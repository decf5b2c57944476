"""Plans a build's inference as a list of C statements over numbered tensors.

In: an `Artifact`. Out: `DeployPlan`: statements in order, a place in memory for each tensor, constants in one pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from relay_hw.analysis.live_bytes import bytes_of
from relay_hw.backend.flat import (
    FlatCall,
    FlatConstant,
    FlatFunction,
    FlatGet,
    FlatInput,
    FlatInvoke,
    FlatNode,
    FlatTuple,
    used_operators,
)
from relay_hw.backend.gpu.plan import KernelLaunch, PlanTensor, place
from relay_hw.backend.store import CONSTANT_ALIGN, ConstantPool
from relay_hw.errors import UnsupportedError
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.deploy.operators import STATEMENTS, VIEWS, finite_check
from relay_hw.runtime.watch import Watched, watched
from relay_hw.target.records import RegionInfo

if TYPE_CHECKING:
    from relay_hw.backend.tvm.c_kernels import CKernels

Tree = Any  # the number of a tensor, or a tuple of trees


@dataclass(frozen=True, slots=True)
class DeployTensor:
    """`root`: the tensor whose memory it is, itself for all but views. `constant`: its bytes in the pool.

    `data`: its value where it is constant.
    """

    type: TensorType
    root: int
    constant: int | None = None
    data: NDArray[Any] | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """C with $k for the address of `tensors[k]`."""

    text: str
    tensors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeployPlan:
    """`offsets`: where the roots that are neither inputs nor constants lie in the arena."""

    tensors: tuple[DeployTensor, ...]
    statements: tuple[Statement, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    offsets: dict[int, int]
    arena_bytes: int
    pool: ConstantPool
    host: CKernels | None


def plan_steps(artifact: Artifact) -> DeployPlan:
    """The plan of a build without control flow. Raises UnsupportedError for operators without a C form, all named."""
    walk = _Walk(artifact)
    inputs = [walk.new(node.type) for node in artifact.main.nodes if isinstance(node, FlatInput)]
    walk.inputs = frozenset(leaf for tree in inputs for leaf in _leaves(tree))
    result = walk.function(artifact.main, inputs)
    if walk.refused:
        raise UnsupportedError(f"operators must have a C form to be exported, not {', '.join(walk.refused)}")
    leaves = [leaf for tree in inputs for leaf in _leaves(tree)]
    return walk.finish(leaves, _leaves(result))


class _Walk:
    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.programs = {row.name: k for k, row in enumerate(artifact.manifest.regions)}
        self.pool = ConstantPool()
        self.tensors: list[DeployTensor] = []
        self.statements: list[Statement] = []
        self.refused: list[str] = []
        self.inputs: frozenset[int] = frozenset()  # tensors that the user gives, checked before anything runs
        own = STATEMENTS.keys() | VIEWS
        compiled = [
            f
            for n, f in artifact.functions.items()
            if n not in self.programs and f.is_straight and not used_operators(f).keys() <= own
        ]
        hosts = {n: f for n, f in artifact.functions.items() if n not in self.programs}
        self.watched = watched(hosts, artifact.manifest.layers)
        shown = [self.watched[f.name].function if f.name in self.watched else f for f in compiled]
        self.host = _compile(shown, self.pool) if compiled else None

    def new(self, ty: Type) -> Tree:
        """New tensors of a type."""
        if isinstance(ty, TupleType):
            return tuple(self.new(item) for item in ty.fields)
        if not isinstance(ty, TensorType):
            raise UnsupportedError(f"a value must be a tensor or a tuple to be exported, not {ty}")
        self.tensors.append(DeployTensor(ty, len(self.tensors)))
        return len(self.tensors) - 1

    def constant(self, data: NDArray[Any]) -> int:
        """A tensor in the pool."""
        row = self.pool.add(data)
        ty = TensorType(data.shape, str(data.dtype))
        self.tensors.append(DeployTensor(ty, len(self.tensors), row["offset"], data))
        return len(self.tensors) - 1

    def function(self, function: FlatFunction, args: Sequence[Tree]) -> Tree:
        """The result of a function whose statements come next."""
        values: list[Tree] = []
        for node in function.nodes:
            values.append(args[len(values)] if isinstance(node, FlatInput) else self._node(node, values))
        return values[function.result]

    def _node(self, node: FlatNode, values: Sequence[Tree]) -> Tree:
        match node:
            case FlatConstant():
                return self.constant(node.data)
            case FlatTuple():
                return tuple(values[i] for i in node.fields)
            case FlatGet():
                return values[node.source][node.index]
            case FlatCall():
                return self._call(node, [values[i] for i in node.args])
            case FlatInvoke():
                return self._invoke(node, [values[i] for i in node.args])
            case _:
                raise ValueError(f"a model without control flow must not hold {type(node).__name__}")

    def _call(self, call: FlatCall, args: Sequence[Tree]) -> Tree:
        if call.op.name in VIEWS and isinstance(call.type, TensorType):
            source = self.tensors[args[0]]
            self.tensors.append(DeployTensor(call.type, source.root, source.constant))
            return len(self.tensors) - 1
        write = STATEMENTS.get(call.op.name)
        operands = [self.tensors[arg] for arg in args if not isinstance(arg, tuple)]
        kept: list[int] = []

        def keep(data: NDArray[Any]) -> str:
            kept.append(self.constant(data))
            return f"${len(kept) + 1}"

        text = None
        if write is not None and len(operands) == len(args):
            text = write(call, [t.type for t in operands], [t.data for t in operands], keep)
        out = self.new(call.type)
        if text is None:
            self.refused += [call.op.name] if call.op.name not in self.refused else []
            return out
        self.statements.append(Statement(text.replace("$out", "$1"), (args[0], out, *kept)))
        return out

    def _invoke(self, node: FlatInvoke, args: Sequence[Tree]) -> Tree:
        row = self.artifact.region(node.function)
        if row is not None:
            return self._launch(row, node.type, args)
        shown = self.watched.get(node.function)
        if self.host is not None and node.function in self.host.functions:
            result = self._kernels(node.function, args)
        else:
            result = self.function(shown.function if shown else self.artifact.functions[node.function], args)
        return self._checked(shown, args, result) if shown else result

    def _checked(self, shown: Watched, args: Sequence[Tree], result: Tree) -> Tree:
        """The function's own result; added statements refuse NaN and infinity in quantized floats."""
        own, *floats = result
        given = [(args[k], name) for k, name in shown.given.items() if self.tensors[args[k]].root not in self.inputs]
        for tensor, name in (*given, *zip(floats, shown.computed, strict=True)):
            check = finite_check(f"the input of {name}", self.tensors[tensor].type)
            assert check is not None, "floats are what is quantized"
            self.statements.append(Statement(check, (tensor,)))
        return own

    def _launch(self, row: RegionInfo, ty: Type, args: Sequence[Tree]) -> Tree:
        program = self.programs[row.name]
        out = self.new(ty)
        tensors = [*(leaf for arg in args for leaf in _leaves(arg)), *_leaves(out)]
        lines = [f"rhw_store(c, {program}, &in_{program}[{k}], ${k})" for k in range(len(row.inputs))]
        lines += [f"rhw_launch(c, {program})"]
        count = len(row.inputs)
        lines += [f"rhw_load(c, {program}, &out_{program}[{k}], ${count + k})" for k in range(len(row.outputs))]
        self.statements.append(Statement("\n".join(f"if ({line}) return -1;" for line in lines), tuple(tensors)))
        return out

    def _kernels(self, name: str, args: Sequence[Tree]) -> Tree:
        assert self.host is not None
        plan = self.host.functions[name]
        leaves = [leaf for arg in args for leaf in _leaves(arg)]
        known: dict[int, int] = dict(zip(plan.inputs, leaves, strict=True))

        def find(index: int) -> int:
            if index not in known:
                known[index] = self._planned(plan.tensors[index])
            return known[index]

        for step in plan.steps:
            if isinstance(step, KernelLaunch):
                tensors = tuple(find(index) for index in step.args)
                holes = ", ".join(f"${k}" for k in range(len(tensors)))
                self.statements.append(Statement(f"{step.kernel}({holes});", tensors))
            else:
                result = self.function(self.host.packed[step.function], [find(index) for index in step.args])
                known |= dict(zip(step.results, _leaves(result), strict=True))
        return _renamed(plan.result, find)

    def _planned(self, tensor: PlanTensor) -> int:
        ty = TensorType(tensor.shape, tensor.dtype)
        offset = None if tensor.constant is None else tensor.constant["offset"]
        self.tensors.append(DeployTensor(ty, len(self.tensors), offset))
        return len(self.tensors) - 1

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> DeployPlan:
        """Give every root an offset in the arena."""
        given = set(inputs)
        sizes = [None if i in given or t.constant is not None or t.root != i else bytes_of(t.type)
                 for i, t in enumerate(self.tensors)]  # fmt: skip
        used = [[self.tensors[i].root for i in statement.tensors] for statement in self.statements]
        slots, places = place(sizes, used, (), [self.tensors[i].root for i in outputs])
        starts = [0]
        for size in slots:
            starts.append(starts[-1] + -(-size // CONSTANT_ALIGN) * CONSTANT_ALIGN)
        offsets = {root: starts[slot] for root, slot in places.items()}
        return DeployPlan(
            tuple(self.tensors),
            tuple(self.statements),
            tuple(inputs),
            tuple(outputs),
            offsets,
            starts[-1],
            self.pool,
            self.host,
        )


def _compile(functions: Sequence[FlatFunction], pool: ConstantPool) -> CKernels:
    from relay_hw.backend.tvm import require

    require("export the host operators of this build")
    from relay_hw.backend.tvm.c_kernels import build_c

    return build_c(functions, pool)


def _leaves(tree: Tree) -> list[int]:
    return [leaf for item in tree for leaf in _leaves(item)] if isinstance(tree, tuple) else [tree]


def _renamed(tree: Tree, find: Any) -> Tree:
    return tuple(_renamed(item, find) for item in tree) if isinstance(tree, tuple) else find(tree)
