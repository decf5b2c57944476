"""Commands that the help of each command shows as examples. Out: command lines by command.

Those with files of `relay-hw demo` work in the folder where it ran, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_DEMO: Final = "relay-hw-demo"
_MODEL: Final = f"{_DEMO}/mnist_cnn.onnx"
_BUILD: Final = f"{_DEMO}/mnist"
_TEST: Final = f"{_DEMO}/mnist_test.npz"
_CALIBRATION: Final = f"--calibration {_DEMO}/mnist_calibration.npz"

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "demo": ("relay-hw demo", "relay-hw demo --device functional --images 100"),
        "compile": (
            f"relay-hw compile {_MODEL} {_CALIBRATION} -o build",
            f"relay-hw compile {_MODEL} {_CALIBRATION} --config w4 --quantize w4a8 -o build-w4",
        ),
        "run": (
            f"relay-hw run {_BUILD} --input {_TEST} --samples 20",
            f"relay-hw run {_BUILD} --input {_TEST} --samples 20 --device cycle --output scores.npz",
        ),
        "profile": (f"relay-hw profile {_BUILD}", f"relay-hw profile {_BUILD} --trace mnist.json"),
        "export": (f"relay-hw export {_BUILD} -o c", "relay-hw export --form vivado --board pynq-z1 -o vivado"),
        "verify": (f"relay-hw verify {_BUILD} --samples 1 --device cycle",),
        "eval": ("relay-hw eval examples/relay/control.relay --entry total 'Cons(1,Cons(2,Nil))'",),
        "debug": ("relay-hw debug examples/relay/control.relay --entry total 'Cons(1,Cons(2,Nil))'",),
        "convert": (f"relay-hw convert {_MODEL} mnist.relay",),
        "check": (f"relay-hw check {_BUILD}/2_quantized.relay",),
        "show": (f"relay-hw show {_BUILD}", f"relay-hw show {_BUILD} --stage quantized"),
        "why": (f"relay-hw why {_BUILD}", f"relay-hw why {_BUILD} --change axi_data_bits=128,latency=50"),
        "diff": (f"relay-hw diff {_BUILD} build-w4 -o diff.html",),
        "disasm": (f"relay-hw disasm {_BUILD}",),
        "isa": ("relay-hw isa", "relay-hw isa gemm"),
        "doctor": ("relay-hw doctor",),
        "compare": (
            f"relay-hw compare {_MODEL} --data {_TEST} {_CALIBRATION} --strategies int8,w4a8 --images 40 -o report",
        ),
        "explore": (
            f"relay-hw explore {_MODEL} {_CALIBRATION} --axis block_in=8,16 --axis out_lanes=4,8 -o front",
            "relay-hw explore --apply 0 -o front",
        ),
        "bitstream": ("relay-hw bitstream --board ulx3s-85f --config ecp5 -o bitstream",),
        "selftest": (
            "relay-hw selftest --device cycle --programs 5",
            "relay-hw selftest --device fpga --port /dev/ttyUSB0 --soc bitstream",
        ),
        "mcp": (f"relay-hw mcp {_DEMO}",),
        "list": ("relay-hw list strategies", "relay-hw list configs"),
        "completion": ("relay-hw completion bash",),
    }
)


def examples(command: str) -> str:
    """The end of a command's help."""
    shown = EXAMPLES[command]
    head = "examples, where `relay-hw demo` has run:" if any(f"{_DEMO}/" in one for one in shown) else "examples:"
    return "\n".join([head, *(f"  {one}" for one in shown)])
