"""The packaged network for handwritten digits, compiled, run and profiled: the calls that a first script makes.

Run `python examples/digits.py [--images N]`. Type checkers accept it in their strict modes (`make types`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import relay_hw as relay
from relay_hw.compare import CompareOptions, Comparison, compare
from relay_hw.demo import MODEL, Digits, read_digits
from relay_hw.explore import Axis, ExploreOptions, Space, explore
from relay_hw.report import Profile
from relay_hw.runtime import CompileOptions, Explanation, Module

Params = dict[str, NDArray[np.generic]]


def build(mod: relay.IRModule, params: Params, calibration: Digits) -> Module:
    """The network as int8 programs of the accelerator."""
    options = CompileOptions(strategy="int8", name="digits")
    return relay.build(mod, "accel", params, device="functional", calibration=calibration.arrays(), options=options)


def accuracy(module: Module, test: Digits) -> float:
    """The share of the images whose best score is that of their label."""
    best = [int(np.argmax(module.run(input=image[np.newaxis]))) for image in test.images]
    return float(np.mean(best == test.labels))


def strategies(mod: relay.IRModule, params: Params, calibration: Digits, test: Digits) -> Comparison:
    """Two ways to quantize the network, side by side."""
    options = CompareOptions(strategies=("int8", "int8-pow2"), name="digits")
    return compare(mod, test.arrays(), options, calibration=calibration.arrays(), params=params)


def fastest(mod: relay.IRModule, params: Params, calibration: Digits) -> int:
    """The fewest cycles that an array of 8 or of 16 input channels takes for an image."""
    options = ExploreOptions(space=Space((Axis("block_in", (8, 16)),)), config="tiny")
    found = explore(mod, options, calibration=calibration.arrays(), params=params)
    return min(row.measured.cycles for row in found.rows if row.measured is not None)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--images", type=int, default=50, help="run the first N of 1,000 test images")
    args = parser.parse_args(argv)
    calibration, every = read_digits()
    images: int = args.images
    test = every.take(np.arange(images))
    mod, params = relay.frontend.from_onnx(MODEL)

    module = build(mod, params, calibration)
    print(f"{accuracy(module, test):.1%} of {images} images are read right")
    profile: Profile = module.profile()
    print(profile.to_text(width=120))
    explanation: Explanation = module.explain(["axi_data_bits=128"])
    print(*(explanation.sentence(outcome) for outcome in explanation.outcomes), sep="\n")
    print(strategies(mod, params, calibration, test).to_text(width=120))
    print(f"{fastest(mod, params, calibration):,} cycles on the faster of two small accelerators")


if __name__ == "__main__":
    main()
