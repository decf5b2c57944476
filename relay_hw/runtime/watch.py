"""Makes host functions return the floats that they quantize, so that NaN and infinity can be refused.

In: a flat host function. Out: the function with those floats among its results; a check that takes them off again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from relay_hw.backend.flat import FlatCall, FlatFunction, FlatTuple, Value, as_array
from relay_hw.quantize.finite import check_value
from relay_hw.target.records import LayerInfo

QUANTIZE = "qnn.quantize"


@dataclass(frozen=True, slots=True)
class Watched:
    """`function` gives (result, floats that it computes and quantizes...).

    `given`: the parameters that it quantizes, `computed`: those floats, each by the quantization that reads it.
    """

    function: FlatFunction
    given: Mapping[int, str]
    computed: tuple[str, ...]

    def checked(self, args: Sequence[Value], value: Value, sample: int) -> Value:
        """The function's own result. Raises InputError if a float that was quantized is NaN or infinite."""
        result, *floats = value
        pairs = [(args[k], name) for k, name in self.given.items()]
        for item, name in (*pairs, *zip(floats, self.computed, strict=True)):
            check_value(f"the input of {name}", as_array(item), sample)
        return result


def watched(functions: Mapping[str, FlatFunction], layers: Sequence[LayerInfo]) -> dict[str, Watched]:
    """Those of `functions` that quantize floats, by name; `layers` give the names for messages."""
    found: dict[str, Watched] = {}
    for name, names in quantizations(functions, layers).items():
        function = functions[name]
        calls = [node for node in function.nodes if isinstance(node, FlatCall) and node.op.name == QUANTIZE]
        if function.is_straight:
            found[name] = _watched(function, {call.args[0]: label for call, label in zip(calls, names, strict=True)})
    return found


def quantizations(functions: Mapping[str, FlatFunction], layers: Sequence[LayerInfo]) -> dict[str, list[str]]:
    """By function that quantizes floats: what messages call its quantizations, in order."""
    found: dict[str, list[str]] = {}
    for name, function in functions.items():
        count = sum(isinstance(node, FlatCall) and node.op.name == QUANTIZE for node in function.nodes)
        rows = [row.name for row in layers if row.function == name and row.operator == QUANTIZE]
        if count:
            found[name] = rows if len(rows) == count else [f"a quantization of {name}"] * count
    return found


def _watched(function: FlatFunction, sources: Mapping[int, str]) -> Watched:
    params = len(function.params)
    computed = [node for node in sources if node >= params]
    nodes = (*function.nodes, FlatTuple((function.result, *computed)))
    given = {node: name for node, name in sources.items() if node < params}
    return Watched(
        replace(function, nodes=nodes, result=len(nodes) - 1), given, tuple(sources[node] for node in computed)
    )
