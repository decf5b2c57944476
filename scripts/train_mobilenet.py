"""Train a second network of depthwise layers by relay-hw's own gradients: a MobileNet v2 for images of 32x32.

In: ../shared/models/resnet8_cifar10, whose answers to images are what is learned; labels are not read. Out: a folder
like those of ../shared/models: the model, samples to calibrate with, test data that training never saw. Half an hour.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.models.builder import Network
from examples.models.mobilenet import inverted
from relay_hw.analysis import infer_type
from relay_hw.ir.expr import Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import copy_with
from relay_hw.quantize import Strategy
from relay_hw.quantize.batch import Values, batched, run_samples
from relay_hw.quantize.layers import plan_layers
from relay_hw.quantize.main import reference_of
from relay_hw.quantize.methods.augment import augmented
from relay_hw.quantize.methods.equalize import with_layers
from relay_hw.quantize.methods.mixed import logits
from relay_hw.quantize.methods.simulate import simulate
from relay_hw.quantize.methods.train import evaluate_lets
from relay_hw.quantize.steps import LinearStep
from relay_hw.runtime.compile import bind_params
from relay_hw.runtime.models import load_model
from relay_hw.transform.gradient import gradient
from relay_hw.transform.graph import make
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.linear import bias_calls

Array = NDArray[Any]
ROOT = Path(__file__).resolve().parents[1]
TEACHER = ROOT.parent / "shared" / "models" / "resnet8_cifar10"
OUTPUT = ROOT / "build" / "models" / "mobilenet_cifar"
# Expansion, channels, stride of each block.
BLOCKS = ((1, 16, 1), (3, 24, 2), (3, 24, 1), (3, 40, 2), (3, 40, 1), (3, 64, 2))
SIZE, FIRST, LAST, CLASSES = 32, 16, 128, 10
BATCH, SEED = 32, 3
RATE, FIRST_DECAY, SECOND_DECAY = 3e-3, 0.9, 0.999
COMPRESSED = 15  # levels of gray that an image differs from itself after compression, at most
MIDDLE, UNIT = 128.0, 64.0  # of bytes of images


def network() -> onnx.ModelProto:
    """The network before training: seeded weights, batch norms that keep signals in range."""
    net = Network("mobilenet_cifar", (3, SIZE, SIZE), SEED)
    x = net.norm_relu6(net.conv(net.input, "conv1", FIRST, 3, 1, 1), "conv1")
    for number, (expansion, channels, stride) in enumerate(BLOCKS, 1):
        x = inverted(net, x, f"block{number}", expansion, channels, stride)
    x = net.norm_relu6(net.conv(x, "conv2", LAST, 1), "conv2")
    x = net.flatten(net.global_average_pool(x, "pool"), "flatten")
    return net.model(net.dense(x, "fc", CLASSES), "logits")


def untrained() -> IRModule:
    """The network as a float module, batch norms folded."""
    return reference_of(_imported())


def _imported() -> IRModule:
    path = OUTPUT / "seeded.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(network().SerializeToString(deterministic=True))
    model = load_model(path)
    return bind_params(model.mod, model.params)


def trained(folder: Path) -> IRModule:
    """The network with the weights that training left in `folder`."""
    mod = untrained()
    with np.load(folder / "weights.npz") as found:
        return learned(mod, [found[f"arr_{number}"] for number in range(len(found.files))])


def learned(mod: IRModule, values: list[Array]) -> IRModule:
    """The network with other weights and biases, each weight before its bias, in order of evaluation."""
    steps = _steps(mod)
    weights = dict(zip(steps, values[::2], strict=True))
    biases = dict(zip(steps, values[1::2], strict=True))
    body = with_layers(mod["main"].body, weights, biases)
    return InferType()(IRModule({"main": copy_with(mod["main"], body=body, checked_type=None)}))


def _steps(mod: IRModule) -> list[LinearStep]:
    return list(plan_layers(mod["main"].body, Strategy("float")).linear)


class Lesson:
    """The squared distance from the teacher's answers, its gradient, and steps of Adam along it."""

    def __init__(self, mod: IRModule) -> None:
        many = batched(mod, BATCH)
        assert many is not None
        self.input = many["main"].params[0]
        body = many["main"].body
        layers = plan_layers(body, Strategy("float"))
        adders, places = bias_calls(body), {}
        self.values: list[Array] = []
        self._names: list[str] = []
        free: list[Var] = []
        for step in layers.linear:
            for call, value in (
                (step.linear.anchor, step.linear.weight),
                (adders[step.linear.anchor], step.linear.bias),
            ):
                var = _var(f"learned_{len(free)}", value.shape)
                places[call] = {1: var}
                free.append(var)
                self.values.append(value.astype(np.float32))
        _, new = simulate(body, layers, lambda _tensor, value: value, places)
        result = new[body]
        wanted = _var("wanted", result.tensor_type.static_shape)
        error = make("subtract", (result, wanted))
        loss = make("mean", (make("multiply", (error, error)),), axis=None, keepdims=False, exclude=False)
        function = Function([self.input, wanted, *free], loss)
        self._reverse = cast(Function, infer_type(IRModule({"main": gradient(function, mode="first_order")}))["main"])
        self._first = [np.zeros_like(one) for one in self.values]
        self._second = [np.zeros_like(one) for one in self.values]

    def step(self, images: Array, wanted: Array, rate: float, number: int) -> float:
        """Change what is learned once; the loss before."""
        given = dict(zip(self._reverse.params, (images, wanted, *self.values), strict=True))
        loss, slopes = evaluate_lets(self._reverse.body, given)
        for k, slope in enumerate(slopes[2:]):
            self._first[k] += (1 - FIRST_DECAY) * (slope - self._first[k])
            self._second[k] += (1 - SECOND_DECAY) * (np.square(slope) - self._second[k])
            mean = self._first[k] / (1 - FIRST_DECAY**number)
            power = self._second[k] / (1 - SECOND_DECAY**number)
            # A layer's weights have a size of their own; a step is a share of it.
            size = max(float(np.sqrt(np.square(self.values[k]).mean())), 0.05)
            self.values[k] = (self.values[k] - rate * size * mean / (np.sqrt(power) + 1e-8)).astype(np.float32)
        return float(loss)


def _var(name: str, shape: tuple[int, ...]) -> Var:
    ty = TensorType(shape, "float32")
    return Var(name, ty, checked_type=ty)


def teach(mod: IRModule, source: Path, images: Array, epochs: int) -> list[Array]:
    """Weights and biases after the epochs; they are kept after each."""
    model = load_model(source / "model.onnx")
    many = batched(reference_of(bind_params(model.mod, model.params)), BATCH)
    assert many is not None
    param, answer = many["main"].params[0], logits(many["main"].body)
    lesson, rng = Lesson(mod), np.random.default_rng(SEED)
    batches = len(images) // BATCH
    number, total = 0, epochs * batches
    for epoch in range(epochs):
        losses: list[float] = []
        for group in rng.permutation(batches * BATCH).reshape(-1, BATCH):
            given = augmented({param: images[group]}, {param: (2, 3)}, rng)
            number += 1
            rate = RATE * min(1.0, number / batches) * 0.5 * (1 + math.cos(math.pi * number / total))
            losses.append(lesson.step(shown(given[param]), Values(given).of(answer), rate, number))
        print(f"epoch {epoch + 1} of {epochs}: squared distance {np.mean(losses):.3f}", flush=True)
        np.savez(OUTPUT / "weights.npz", *lesson.values)
    return lesson.values


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--teacher", type=Path, default=TEACHER, help="folder of the network to learn from")
    options = parser.parse_args()
    source: Path = options.teacher
    mod, name = untrained(), "input_1"
    images = {file: np.load(source / f"{file}.npz")[name] for file in ("agreement", "calibration", "test")}
    found = learned(mod, teach(mod, source, images["agreement"], options.epochs))
    is_new = unseen(images["test"], images["agreement"])
    with np.load(source / "test.npz") as data:
        labels = data["labels"][is_new]
    input_name = mod["main"].params[0].name_hint
    right = run_samples(found, {input_name: shown(images["test"][is_new])}).argmax(axis=1) == labels
    print(f"top-1 on {len(labels)} images that training never saw: {right.mean():.1%}")
    np.savez(OUTPUT / "calibration.npz", **{input_name: shown(images["calibration"])})
    np.savez(OUTPUT / "test.npz", **{input_name: shown(images["test"][is_new]), "labels": labels})
    return 0


def unseen(images: Array, others: Array) -> Array:
    """Which images are none of the others, even where these were compressed since."""
    flat, other = (array.reshape(len(array), -1).astype(np.float64) for array in (images, others))
    squares = np.square(flat).sum(axis=1)[:, None] + np.square(other).sum(axis=1) - 2 * flat @ other.T
    return np.sqrt(squares.min(axis=1).clip(0) / flat.shape[1]) > COMPRESSED


def shown(images: Array) -> Array:
    """Bytes as the network takes them."""
    return ((images - MIDDLE) / UNIT).astype(np.float32)


if __name__ == "__main__":
    sys.exit(main())
