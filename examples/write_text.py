"""The language model of this folder goes on with a text, byte by byte, each byte a launch of the accelerator.

Run `python examples/write_text.py [--count N] [--device NAME]`. The model is compiled once, into build/opticks. The
likeliest byte is taken, so that every device writes the same text.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import relay_hw as relay
from relay_hw.runtime import CompileOptions, compile_model
from relay_hw.runtime.artifact import Artifact, load_artifact
from relay_hw.runtime.execute import Executor
from relay_hw.target.accel.devices import close_device, open_device
from scripts.text_data import CONTEXT, load_text, spread

MODEL = Path(__file__).with_name("opticks_lm.onnx")
BUILD = Path("build/opticks")
PROMPT = "The Light which comes from the Sun "
# Windows of text that the ranges of activations are measured on.
CALIBRATION = 16


def compiled(build: Path, config: str) -> Artifact:
    """The model as one program; an earlier build is taken as it is."""
    if build.exists():
        return load_artifact(build)
    mod, params = relay.frontend.from_onnx(MODEL)
    calibration = {"bytes": spread(load_text(), CALIBRATION)}
    options = CompileOptions(config=config, host_target="numpy", name="opticks")
    return compile_model(mod, options, params=params, calibration=calibration).save(build)


def continued(executor: Executor, text: bytes) -> Iterator[int]:
    """The bytes behind `text`, without end: the network sees the last 128, each of which sees those before it."""
    while True:
        seen = text[-CONTEXT:]
        window = np.frombuffer(seen.ljust(CONTEXT), np.uint8).astype(np.int64)[np.newaxis]
        logits = executor.run({"bytes": window}).outputs["logits"].reshape(CONTEXT, -1)
        best = int(np.argmax(logits[len(seen) - 1]))
        yield best
        text += bytes([best])


def written(build: Artifact, device: str, prompt: str, count: int) -> bytes:
    """So many bytes behind the prompt, by this device."""
    opened = open_device(device, build.config)
    try:
        follow = continued(Executor(build, opened), prompt.encode())
        return bytes(next(follow) for _ in range(count))
    finally:
        close_device(opened)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--prompt", default=PROMPT, help="text to go on with")
    parser.add_argument("--count", type=int, default=32, help="bytes to write")
    parser.add_argument("--device", default="functional", help="functional, cycle or rtl")
    parser.add_argument("--config", default="default", help="accelerator that the model is compiled for")
    args = parser.parse_args(argv)
    build = compiled(BUILD if args.config == "default" else BUILD.with_name(f"opticks-{args.config}"), args.config)
    print(args.prompt + written(build, args.device, args.prompt, args.count).decode(errors="replace"))


if __name__ == "__main__":
    main()
