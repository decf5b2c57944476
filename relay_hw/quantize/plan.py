"""Plans a quantization: which operators become integer, and which tensors share a scale.

In: the body of a simplified dataflow function. Out: steps in order of evaluation, one for each tensor that stays.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from relay_hw.ir.expr import Call, Constant, Expr, Tuple
from relay_hw.quantize.pointwise import curved, functions_of
from relay_hw.quantize.rows import Norm, RowFunction, Softmax, row_functions
from relay_hw.quantize.rules import ACTIVATIONS, AVERAGES, GATED, LAYERS, MOVES
from relay_hw.quantize.steps import (
    AddStep,
    AverageStep,
    BoundStep,
    FloatStep,
    GateStep,
    KeepStep,
    LinearStep,
    NormStep,
    Plan,
    PlanStep,
    ProductStep,
    SoftmaxStep,
    TableStep,
)
from relay_hw.transform.graph import (
    calls_that_read,
    count_uses,
    dataflow_order,
    dtype_of,
    is_op,
    op_name,
    scalar_value,
    shape_of,
)
from relay_hw.transform.linear import find_linear
from relay_hw.transform.rewrite_rules import Uses

# What reads integers, or passes on what it has.
_EAGER: Final = frozenset(
    {
        *LAYERS,
        *AVERAGES,
        *MOVES,
        "add",
        "concatenate",
        "multiply",
        "split",
        "nn.batch_matmul",
        "nn.max_pool2d",
        "nn.pad",
    }
)


def make_plan(body: Expr, floats: Collection[Expr] = ()) -> Plan:
    """Plan the quantization of a dataflow graph; the anchors `floats` stay as they are.

    Raises UnsupportedError if `body` is no dataflow graph.
    """
    return _Planner(body, floats).plan()


class _Planner:
    def __init__(self, body: Expr, floats: Collection[Expr]) -> None:
        self._floats = frozenset(floats)
        self._order = dataflow_order(body, "main")
        self._uses = Uses(count_uses(body))
        self._readers = calls_that_read(self._order)
        self._absorbed: set[Expr] = set()
        self._integer: set[Expr] = set()
        # Operators that are functions of one tensor in integers; of which one, for those that get a table.
        self._functions: set[Expr] = set()
        self._tables: dict[Expr, Expr] = {}
        # Softmax and norms of rows by what they read; by their result, those that become integers.
        calls = [node for node in self._order if isinstance(node, Call)]
        self._found: dict[Expr, list[RowFunction]] = {}
        for one in row_functions(calls, self._all_readers):
            self._found.setdefault(one.source, []).append(one)
        self._rows: dict[Expr, RowFunction] = {}

    def plan(self) -> Plan:
        steps: list[PlanStep] = []
        for node in self._order:
            if not isinstance(node, Call):
                self._plan_norms(node)
                continue
            if node in self._absorbed:
                continue
            if self._is_summand(node):
                self._absorbed.add(node)
                continue
            step = self._step(node)
            steps.append(step)
            if not isinstance(step, FloatStep):
                self._integer.add(step.output)
                self._plan_rows(step.output)
                if step.output not in self._functions:
                    self._plan_functions(step.output)
            else:
                self._plan_norms(step.output)
        return Plan(tuple(steps), _groups(steps))

    def _step(self, call: Call) -> PlanStep:
        if not _is_float32(call) or call in self._floats:
            return FloatStep(call, ())
        name = op_name(call)
        if name in LAYERS:
            return self._linear_step(call)
        if call in self._rows:
            return _row_step(self._rows[call])
        if call in self._tables:
            return TableStep(call, (self._tables[call],))
        if name == "add" and self._is_residual(call):
            output, low, high = self._activation(call)
            (left, left_factor), (right, right_factor) = (self._summand(arg) for arg in call.args)
            return AddStep(output, (left, right), low, high, (left_factor, right_factor))
        if name == "multiply" and (gate := self._gated(call)) is not None:
            output, low, high = self._activation(call)
            return GateStep(output, gate, low, high)
        if name == "nn.batch_matmul" and self._is_product(call):
            return ProductStep(call, tuple(call.args))
        if name in AVERAGES and _has_one_divisor(call):
            output, low, high = self._activation(call)
            return AverageStep(output, (call.args[0],), low, high, pool=call)
        if name == "nn.max_pool2d" or (name in MOVES and self._is_integer(call.args[0])):
            return KeepStep(call, (call.args[0],))
        if name == "nn.pad" and self._is_integer(call.args[0]) and isinstance(call.args[1], Constant):
            return KeepStep(call, (call.args[0],))
        if name == "concatenate" and self._is_mostly_integer(call.args[0]):
            assert isinstance(call.args[0], Tuple)
            return KeepStep(call, tuple(call.args[0].fields))
        if name in ACTIVATIONS and self._is_integer(call.args[0]):
            return BoundStep(call, (call.args[0],), *_bounds(call))
        return FloatStep(call, ())

    def _linear_step(self, anchor: Call) -> PlanStep:
        output: Expr = anchor
        reader = self._only_reader(anchor)
        if reader is not None and is_op(reader, "nn.bias_add"):
            output = reader
        linear = find_linear(output, self._uses) or find_linear(anchor, self._uses)
        if linear is None or not _is_plain(anchor):
            return FloatStep(anchor, ())
        if linear.bias is None:
            output = anchor
        elif output is not anchor:
            self._absorbed.add(output)
        output, low, high = self._activation(output)
        return LinearStep(output, (anchor.args[0],), low, high, linear=linear)

    def _activation(self, output: Expr) -> tuple[Expr, float, float]:
        """The tensor after the activations that are the only readers of `output`, and their range."""
        low, high = -math.inf, math.inf
        reader = self._only_reader(output)
        while reader is not None and is_op(reader, *ACTIVATIONS):
            inner_low, inner_high = _bounds(reader)
            low, high = (min(max(bound, inner_low), inner_high) for bound in (low, high))
            self._absorbed.add(reader)
            output, reader = reader, self._only_reader(reader)
        return output, low, high

    def _only_reader(self, expr: Expr) -> Call | None:
        readers = self._readers.get(expr, [])
        only = readers[0] if len(readers) == 1 and self._uses.is_single(expr) else None
        return only if isinstance(only, Call) else None

    def _is_residual(self, call: Call) -> bool:
        return _adds_tensors(call) and any(self._is_integer(self._summand(arg)[0]) for arg in call.args)

    def _is_summand(self, call: Call) -> bool:
        """Whether a tensor in integers is only multiplied by a positive number before it is added to other tensors."""
        data, factor = scaled(call)
        if factor <= 0 or data is call or not self._is_integer(data) or not _is_float32(call):
            return False
        readers = self._all_readers(call)
        return readers is not None and all(map(self._is_sum, readers))

    def _is_sum(self, reader: Expr) -> bool:
        return (
            isinstance(reader, Call) and is_op(reader, "add") and reader not in self._floats and _adds_tensors(reader)
        )

    def _summand(self, expr: Expr) -> tuple[Expr, float]:
        """What is added, and its factor."""
        return scaled(expr) if expr in self._absorbed else (expr, 1.0)

    def _gated(self, call: Call) -> tuple[Expr, Expr] | None:
        """The operands of a product of two images or rows of tokens, the larger one first, if one is integer already.

        Vectors are left out: in the cells of recurrent networks they are states, which would lose with every step.
        """
        if call in self._functions or not any(map(self._is_integer, call.args)):
            return None
        for left, right in (call.args, call.args[::-1]):
            shape, other = shape_of(left), shape_of(right)
            if shape is None or other is None or shape != shape_of(call) or len(shape) < GATED or _is_number(right):
                continue
            if other == shape or (other == (*shape[:2], 1, 1) and not isinstance(right, Constant)):
                return left, right
        return None

    def _all_readers(self, call: Call) -> list[Expr] | None:
        """Calls that read a call; None if it is read elsewhere too."""
        readers = self._readers.get(call, [])
        return readers if len(readers) == self._uses.counts.get(call, 0) else None

    def _plan_rows(self, source: Expr) -> None:
        """Softmax and norms of a tensor in integers that go to a layer in integers."""
        for one in self._found.get(source, ()):
            if one.output not in self._floats and self._feeds_layer(one.output):
                self._rows[one.output] = one
                self._absorbed.update(one.inside)

    def _plan_norms(self, source: Expr) -> None:
        """Norms of a tensor in floats that becomes integers, since it is added to what layers make of the norm."""
        readers = self._readers.get(source, [])
        if any(isinstance(one, Norm) for one in self._found.get(source, ())) and any(map(self._is_sum, readers)):
            self._plan_rows(source)

    def _feeds_layer(self, call: Expr) -> bool:
        """Whether a layer or a product of matrices reads it, perhaps after moves and norms."""
        seen = [call]
        for one in seen:
            readers = [reader for reader in self._readers.get(one, []) if reader not in self._floats]
            if any(is_op(reader, *LAYERS, "nn.batch_matmul") for reader in readers):
                return True
            seen += [reader for reader in readers if is_op(reader, *MOVES)]
            seen += [found.output for found in self._found.get(one, ()) if found.output not in self._floats]
        return False

    def _plan_functions(self, source: Expr) -> None:
        """Which functions of a tensor in integers get tables: those that go to a layer in integers and are more than
        bends. What only these read is computed by nobody."""
        calls = functions_of(source, self._readers, lambda call: is_op(call, *ACTIVATIONS) and call.args[0] is source)
        members = frozenset(calls)
        self._functions |= members
        tables = [call for call in curved(calls) if call not in self._floats and self._goes_to_layer(call, members)]
        self._tables |= dict.fromkeys(tables, source)
        replaced = set[Expr](tables)
        for call in reversed(calls):
            readers = self._all_readers(call)
            if readers and call not in self._floats and replaced.issuperset(readers):
                replaced.add(call)
                self._absorbed |= {call} - self._tables.keys()

    def _goes_to_layer(self, call: Call, members: frozenset[Call]) -> bool:
        """Whether something that reads integers, and is no function of the same tensor, reads a function."""
        return any(_reads_integers(one) and one not in members for one in self._readers.get(call, []))

    def _is_product(self, call: Call) -> bool:
        """Whether both have the same number of matrices, and one of them is integer already."""
        left, right = (shape_of(arg) for arg in call.args)
        same = left is not None and right is not None and left[0] == right[0]
        constant = any(isinstance(arg, Constant) for arg in call.args)
        return same and not constant and _is_plain(call) and any(map(self._is_integer, call.args))

    def _is_mostly_integer(self, parts: Expr) -> bool:
        """Whether at least one tensor is integer already."""
        return isinstance(parts, Tuple) and any(map(self._is_integer, parts.fields))

    def _is_integer(self, expr: Expr) -> bool:
        return expr in self._integer


def _row_step(one: RowFunction) -> PlanStep:
    if isinstance(one, Softmax):
        return SoftmaxStep(one.output, (one.source,), softmax=one)
    return NormStep(one.output, (one.source,), norm=one)


def _reads_integers(reader: Expr) -> bool:
    """Whether an operator may have a form in integers that reads what is before it; factors may go with the host's."""
    if not isinstance(reader, Call) or op_name(reader) not in _EAGER:
        return False
    shape = shape_of(reader)
    is_gate = len(shape or ()) >= GATED and not any(
        isinstance(arg, Constant) and (shape_of(arg) != shape or _is_number(arg)) for arg in reader.args
    )
    return is_gate or not is_op(reader, "multiply")


def scaled(expr: Expr) -> tuple[Expr, float]:
    """The tensor and the number that a multiplication is of; any other expression, and 1."""
    if isinstance(expr, Call) and is_op(expr, "multiply"):
        for number, data in (expr.args, expr.args[::-1]):
            if isinstance(number, Constant) and number.data.size == 1 and shape_of(data) == shape_of(expr):
                return data, float(number.data.reshape(-1)[0])
    return expr, 1.0


def _adds_tensors(call: Call) -> bool:
    """Whether both operands are tensors of one known shape."""
    same = shape_of(call.args[0]) == shape_of(call.args[1]) is not None
    return same and not any(map(_is_number, call.args))


def _is_number(expr: Expr) -> bool:
    """Whether a constant is one number, however often."""
    return scalar_value(expr) is not None


def _is_float32(call: Call) -> bool:
    return dtype_of(call) == "float32" and shape_of(call) is not None


def _is_plain(anchor: Call) -> bool:
    out_dtype = anchor.attrs.out_dtype
    return out_dtype in (None, "", "float32") and dtype_of(anchor.args[0]) == "float32"


def _has_one_divisor(pool: Call) -> bool:
    """Whether every window is divided by the same number."""
    if is_op(pool, "nn.global_avg_pool2d"):
        return shape_of(pool.args[0]) is not None
    attrs = pool.attrs
    padded = any(attrs.padding) and not attrs.count_include_pad
    return not padded and not attrs.ceil_mode and all(step == 1 for step in attrs.dilation)


def _bounds(call: Call) -> tuple[float, float]:
    return (0.0, math.inf) if is_op(call, "nn.relu") else (call.attrs.a_min, call.attrs.a_max)


def _groups(steps: Sequence[PlanStep]) -> dict[Expr, tuple[Expr, ...]]:
    """Groups of tensors with one scale, in the order of their first appearance."""
    leader: dict[Expr, Expr] = {}

    def find(expr: Expr) -> Expr:
        while leader.setdefault(expr, expr) is not expr:
            expr = leader[expr]
        return expr

    for step in steps:
        for tensor in _integer_tensors(step):
            find(tensor)
        if isinstance(step, (KeepStep, BoundStep)):
            for tensor in step.inputs:
                leader[find(step.output)] = find(tensor)
    members: dict[Expr, list[Expr]] = {}
    for expr in leader:
        members.setdefault(find(expr), []).append(expr)
    return {expr: tuple(members[find(expr)]) for expr in leader}


def _integer_tensors(step: PlanStep) -> Iterator[Expr]:
    if not isinstance(step, FloatStep):
        yield from step.inputs
        yield step.output
