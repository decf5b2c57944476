"""Rows of the benchmark: what was measured, the bound that it is held to, and the best figure of others.

In: measurements of `bench_layers`, `bench_speed`, `bench_text`. Out: `Row`, and tables in Markdown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import onnx

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.report import number, table

# Figures of others, with where they were published.
VTA_IDEAL = "VTA: 7.73 M for the middle layers alone; 31 M whole in tsim (apache/tvm#4694)"
NVDLA = "NVDLA, estimate at 256 MACs: 69 to 73 % (NVDLA primer)"
VELA_IC = "Ethos-U55-128, Vela's estimate: 48.4 %"
VELA_VWW = "Ethos-U55-128, Vela's estimate: 26.5 %"
VTA_TSIM = "VTA tsim: 0.14 M cycles/s, ResNet-18 in 228 s (apache/tvm#4986)"
VTA_FSIM = "VTA fsim: 1.01 s (apache/tvm#4986)"
VTA_TUNE = "VTA's AutoTVM: about 2 h on 6 boards (tune_relay_vta.py)"
TVM_TEXT = "TVM 0.19, in C++: 15 s parse and type, 1 s print"
# Of the weights of the decoder that is measured for its bytes; and axes of a cache, which no other input has.
_WEIGHT_BITS, _CACHE_AXES = 4, 4


@dataclass(frozen=True, slots=True)
class Row:
    """`value` in `unit`; `bound`: at most (`most`) or at least that much, None where nothing is promised."""

    what: str
    value: float
    unit: str
    bound: float | None = None
    most: bool = True
    peer: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the bound is kept; None without one."""
        if self.bound is None:
            return None
        return self.value <= self.bound if self.most else self.value >= self.bound

    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        bound = "" if self.bound is None else f"{'at most' if self.most else 'at least'} {_amount(self.bound)}"
        verdict = {None: "", True: "yes", False: "**no**"}[self.holds]
        return self.what, f"{_amount(self.value)} {self.unit}", bound, verdict, self.peer

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "holds": self.holds}


HEADER = ("What", "Measured", "Bound", "Kept", "Others")


def judge(rows: Sequence[Row]) -> int:
    """Print rows; 1 where one misses its bound, else 0."""
    print(table(HEADER, [row.cells() for row in rows], frozenset({"Measured"})))
    return int(any(row.holds is False for row in rows))


def _amount(value: float) -> str:
    return number(int(value)) if value >= 1000 or value == int(value) else f"{value:.3g}"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[str] = frozenset()) -> str:
    """A table of Markdown; columns named in `right` are aligned at the right."""
    rule = ["--:" if name in right else "---" for name in header]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows))


def layer_rows(layers: Sequence[dict[str, Any]]) -> list[Row]:
    """ResNet-18's convolutions, each alone."""
    share = {row["name"]: 100 * row["roofline"] for row in layers}
    worst = min((name for name in share if name != "C1"), key=lambda name: share[name])
    return [
        Row("ResNet-18, C1 alone (147 taps in 160 lanes), of its roofline", share["C1"], "%", 88, False),
        Row(f"ResNet-18, C2 to C11 each alone, of its roofline: the least ({worst})", share[worst], "%", 93, False),
    ]


def network_rows(networks: Sequence[dict[str, Any]]) -> list[Row]:
    """Whole networks; cycles from RTL."""
    row = {network["name"]: network for network in networks}

    def used(name: str) -> float:
        return 100 * row[name]["utilisation"]

    deconv = {layer["name"].partition(":")[2]: layer for layer in row["dcgan"]["layers"]}

    def busiest(name: str) -> float:
        return 100 * deconv[name]["busiest"] / deconv[name]["cycles"]

    return [
        Row("ResNet-18, 224x224, whole network", row["resnet18"]["cycles"], "cycles", 7_600_000, peer=VTA_IDEAL),
        Row("ResNet-34, 224x224, whole network", row["resnet34"]["cycles"], "cycles"),
        Row("ResNet-50 v1.5, whole network, utilisation", used("resnet50"), "%", 90, False, NVDLA),
        Row("ResNet-8, utilisation", used("resnet8"), "%", 75, False, VELA_IC),
        Row("DS-CNN, utilisation", used("ds_cnn"), "%", 40, False),
        Row("wake-words MobileNet, utilisation", used("wake_words"), "%", 40, False, VELA_VWW),
        Row("MobileNet v1, 224x224, whole network", row["mobilenet_v1"]["cycles"], "cycles", 3_500_000),
        Row("MobileNet v2, 224x224, whole network", row["mobilenet_v2"]["cycles"], "cycles"),
        Row("MobileNet v1 with groups of 16, whole network", row["mobilenet_grouped"]["cycles"], "cycles"),
        Row("DCGAN's generator, whole, utilisation", used("dcgan"), "%", 60, False),
        Row("DCGAN, CT1, its busiest part at work", busiest("deconv1"), "%", 93, False),
        Row("DCGAN, CT2, its busiest part at work", busiest("deconv2"), "%", 90, False),
        Row("DCGAN, CT3, its busiest part at work", busiest("deconv3"), "%", 90, False),
    ]


_CLASSIFIER = "lm_head"
# Utilisation that is asked of transformers, in percent.
_ATTENTION = {"deit_tiny": 75, "bert": 75, "kwt_1": 60, "conformer": 65}


def transformer_rows(networks: Sequence[dict[str, Any]]) -> list[Row]:
    """Whole transformers; cycles from RTL."""
    rows: list[Row] = []
    for network in networks:
        name = network["name"]
        rows.append(Row(f"`{name}`, whole network", network["cycles"], "cycles"))
        rows.append(Row("its utilisation", 100 * network["utilisation"], "%", _ATTENTION.get(name), False))
    return rows


def stored_rows(decoder: dict[str, Any], model: onnx.ModelProto, config: AccelConfig) -> list[Row]:
    """Cycles of a word, over those in which the bus brings what is stored for it: weights, caches, records, program;
    and those bytes without caches, over the weights' alone.
    """
    stored = sum(decoder["bytes"][kind] for kind in ("weights", "records", "uops", "instructions"))
    weights, caches = _elements(model)
    plain = weights * _WEIGHT_BITS // 8
    return [
        Row("its cycles, of the bus' for what is stored", decoder["cycles"] * config.bus_bytes / stored, "times", 1.1),
        Row("its stored bytes without caches, of the weights' alone", (stored - caches) / plain, "times", 1.15),
    ]


def body_row(network: dict[str, Any], config: AccelConfig) -> Row:
    """Utilisation of a language model's layers without the classifier, whose weights are read for one word only."""
    layers = [layer for layer in network["layers"] if _CLASSIFIER not in layer["name"]]
    products, cycles = (sum(layer[key] for layer in layers) for key in ("macs", "cycles"))
    part = 100 * products / (cycles * config.macs_per_cycle)
    return Row("utilisation of its layers without the classifier", part, "%", 80, False)


def _elements(model: onnx.ModelProto) -> tuple[int, int]:
    """Numbers in the weights of products, and in the caches that go in."""
    used = {name for node in model.graph.node if node.op_type in ("MatMul", "Gemm") for name in node.input}
    weights = sum(math.prod(one.dims) for one in model.graph.initializer if one.name in used)
    shapes = ([size.dim_value for size in one.type.tensor_type.shape.dim] for one in model.graph.input)
    return weights, sum(math.prod(shape) for shape in shapes if len(shape) == _CACHE_AXES)


def text_rows(found: dict[str, Any]) -> list[Row]:
    """The language."""
    flow, net = "dataflow_10000", "resnet50"
    both = found[f"{net}_parse_and_type_seconds"] + found[f"{net}_print_seconds"]
    return [
        Row("10,000 operators: parse and type", found[f"{flow}_parse_and_type_seconds"], "s", 2, peer=TVM_TEXT),
        Row("10,000 operators: print", found[f"{flow}_print_seconds"], "s", 0.5),
        Row("ResNet-50: parse, type and print", both, "s", 0.3),
    ]
