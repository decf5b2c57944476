"""Train the small language model of `examples/` and write examples/opticks_lm.onnx: seven minutes of a core.

Needs torch. In: the text of text_data.py. Out: an ONNX model of opset 17 of the shape of LLaMA (RMS norm, rotary
embedding, SwiGLU, causal attention) that reads 128 bytes and says for each what byte comes next; the bits that a byte
of unseen text costs it, beside those of a Kneser-Ney model of three bytes in a row.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.ngram import ORDER, KneserNey
from scripts.onnx_graph import Graph
from scripts.text_data import CONTEXT, STRIDE, Array, Text, judged, load_text, windows

SEED = 32
SYMBOLS, WIDTH, LAYERS, HEADS, INNER = 256, 96, 4, 3, 256
HEAD = WIDTH // HEADS
ROTARY_BASE, EPSILON = 1e4, 1e-5
BATCH, EPOCHS = 16, 14
RATE, WARM_UP, DECAY, DROPOUT = 4e-3, 200, 0.1, 0.1
# Of rounded weights: the share of outputs, the largest integer, how much of a weight's range it stands for.
ROUNDED, LARGEST, CLIP = 0.5, 7, 0.9
INPUT_NAME, OUTPUT_NAME = "bytes", "logits"
DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "examples" / "opticks_lm.onnx"


class Dense(nn.Module):
    """A layer without bias. In training the weights of some outputs, drawn anew each time, are rounded to 4 bits: the
    network learns to do without what rounding takes from it (after Fan 2020, "Quant-Noise").
    """

    def __init__(self, inputs: int, outputs: int, rounded: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self._rounded = rounded

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self._rounded:
            return functional.linear(x, self.weight)
        weight = self.weight.detach()
        step = weight.abs().amax(1, keepdim=True) * (CLIP / LARGEST)
        error = (weight / step).round().clamp(-LARGEST, LARGEST) * step - weight
        drawn = torch.rand(len(weight), 1) < ROUNDED
        return functional.linear(x, self.weight + error * drawn)


class RmsNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * self.gain


class Block(nn.Module):
    """Attention and a gated layer, each added to what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(), RmsNorm()
        self.query, self.key, self.value, self.out = (Dense(WIDTH, WIDTH) for _ in range(4))
        self.gate, self.up = (Dense(WIDTH, INNER) for _ in range(2))
        self.down = Dense(INNER, WIDTH)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        batch, length, _ = x.shape

        def heads(value: Tensor) -> Tensor:
            return value.view(batch, length, HEADS, HEAD).transpose(1, 2)

        def turned(value: Tensor) -> Tensor:
            low, high = value.chunk(2, -1)
            return value * cosine + torch.cat((high, low), -1) * sine

        y = self.norm1(x)
        query, key = turned(heads(self.query(y))), turned(heads(self.key(y)))
        mixed = functional.scaled_dot_product_attention(query, key, heads(self.value(y)), is_causal=True)
        y = self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        x = x + functional.dropout(y, DROPOUT, self.training)
        y = self.norm2(x)
        y = self.down(functional.silu(self.gate(y)) * self.up(y))
        return x + functional.dropout(y, DROPOUT, self.training)


class LanguageModel(nn.Module):
    """Half a million weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = RmsNorm()
        self.head = Dense(WIDTH, SYMBOLS, rounded=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                # What is added to the stream starts small, so that the stream keeps its size.
                last = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.08 / math.sqrt(2 * LAYERS if last else 1))
        cosine, sine = rotary_tables()
        self.register_buffer("cosine", torch.from_numpy(cosine), persistent=False)
        self.register_buffer("sine", torch.from_numpy(sine), persistent=False)

    def forward(self, symbols: Tensor) -> Tensor:
        x = functional.dropout(self.embedding(symbols), DROPOUT, self.training)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return self.head(self.norm(x))


def rotary_tables() -> tuple[Array, Array]:
    """What the elements of a head at each position are multiplied by, and those of its halves swapped: float32."""
    frequency = ROTARY_BASE ** (-np.arange(HEAD // 2) / (HEAD // 2))
    angle = np.arange(CONTEXT)[:, None] * frequency
    cosine, sine = np.cos(angle), np.sin(angle)
    tables = np.concatenate((cosine, cosine), 1), np.concatenate((-sine, sine), 1)
    return tables[0].astype(np.float32), tables[1].astype(np.float32)


def train(text: Text, epochs: int, output: Path) -> LanguageModel:
    """The trained network, in inference mode; it is kept after each epoch."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    network = LanguageModel()
    matrices = [parameter for parameter in network.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in network.parameters() if parameter.dim() == 1]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.95))
    generator = np.random.default_rng(SEED)
    parts = [torch.from_numpy(part.astype(np.int64)) for part in text.learned]
    steps = sum(map(len, parts)) // (BATCH * CONTEXT)
    started = time.monotonic()
    for step in range(epochs * steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * _schedule(step, epochs * steps)
        batch = _drawn(parts, generator)
        logits = network(batch[:, :-1])
        loss = functional.cross_entropy(logits.reshape(-1, SYMBOLS), batch[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        if step % steps == steps - 1:
            export(network, output)
            bits, seconds = loss.item() / math.log(2), time.monotonic() - started
            print(f"epoch {step // steps + 1} of {epochs}: {bits:.3f} bits a byte, {seconds:.0f} s", flush=True)
    return network.eval()


def _schedule(step: int, steps: int) -> float:
    """The share of the highest rate: up, then down along a cosine."""
    if step < WARM_UP:
        return (step + 1) / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / (steps - WARM_UP)))


def _drawn(parts: list[Tensor], generator: np.random.Generator) -> Tensor:
    """Some stretches from anywhere, each a byte longer than the context."""
    sizes = np.asarray([len(part) - CONTEXT for part in parts])
    chosen = generator.choice(len(parts), BATCH, p=sizes / sizes.sum())
    begins = generator.integers(0, sizes[chosen])
    return torch.stack([parts[part][begin : begin + CONTEXT + 1] for part, begin in zip(chosen, begins, strict=True)])


def bits_a_byte(network: LanguageModel, text: Text) -> float:
    """What an unseen byte costs, with half of the context or more in front of it."""
    symbols, following = (torch.from_numpy(array) for array in windows(text.unseen))
    costs: list[Tensor] = []
    with torch.no_grad():
        for some, after in zip(symbols.split(64), following.split(64), strict=True):
            logits = network(some)[:, -STRIDE:]
            costs.append(functional.cross_entropy(logits.transpose(1, 2), after[:, -STRIDE:], reduction="none"))
    return float(torch.cat(costs).double().mean()) / math.log(2)


def export(network: LanguageModel, path: Path) -> None:
    """Write the network to ONNX as PyTorch's exporter does, with fixed names: equal weights give equal bytes."""
    graph = Graph("opticks_lm")
    graph.constant("rotary.cosine", network.cosine)
    graph.constant("rotary.sine", network.sine)
    graph.constant("mask", torch.full((CONTEXT, CONTEXT), -math.inf).triu(1))
    x = graph.add("Gather", "embedding", graph.constant("embedding.weight", network.embedding.weight), INPUT_NAME)
    for number, block in enumerate(network.blocks):
        x = _block(graph, block, f"blocks.{number}", x)
    x = graph.matmul("head", _norm(graph, network.norm, "norm", x), network.head.weight)
    graph.write(path, (INPUT_NAME, "int64", [1, CONTEXT]), (x, OUTPUT_NAME, [1, CONTEXT, SYMBOLS]))


def _norm(graph: Graph, norm: RmsNorm, name: str, x: str) -> str:
    squares = graph.add("Pow", f"{name}.square", x, graph.number("two", 2.0))
    mean = graph.add("ReduceMean", f"{name}.mean", squares, axes=[-1], keepdims=1)
    root = graph.add("Sqrt", f"{name}.root", graph.add("Add", f"{name}.add", mean, graph.number("epsilon", EPSILON)))
    shown = graph.add("Div", f"{name}.divide", x, root)
    return graph.add("Mul", f"{name}.scaled", shown, graph.constant(f"{name}.gain", norm.gain))


def _block(graph: Graph, block: Block, name: str, x: str) -> str:
    y = _attention(graph, block, name, _norm(graph, block.norm1, f"{name}.norm1", x))
    x = graph.add("Add", f"{name}.add1", x, y)
    y = _norm(graph, block.norm2, f"{name}.norm2", x)
    gate = graph.matmul(f"{name}.gate", y, block.gate.weight)
    gate = graph.add("Mul", f"{name}.silu", gate, graph.add("Sigmoid", f"{name}.sigmoid", gate))
    y = graph.add("Mul", f"{name}.gated", gate, graph.matmul(f"{name}.up", y, block.up.weight))
    return graph.add("Add", f"{name}.add2", x, graph.matmul(f"{name}.down", y, block.down.weight))


def _attention(graph: Graph, block: Block, name: str, x: str) -> str:
    def heads(part: str, layer: Dense, order: list[int]) -> str:
        value = graph.matmul(f"{name}.{part}", x, layer.weight)
        value = graph.reshape(f"{name}.{part}_heads", value, [1, CONTEXT, HEADS, HEAD])
        return graph.add("Transpose", f"{name}.{part}_turn", value, perm=order)

    query = _turned(graph, f"{name}.query", heads("query", block.query, [0, 2, 1, 3]))
    key = _turned(graph, f"{name}.key", heads("key", block.key, [0, 2, 1, 3]))
    key = graph.add("Transpose", f"{name}.key_columns", key, perm=[0, 1, 3, 2])
    scores = graph.add("MatMul", f"{name}.scores", query, key)
    scores = graph.add("Mul", f"{name}.scale", scores, graph.number("scale", HEAD**-0.5))
    scores = graph.add("Softmax", f"{name}.softmax", graph.add("Add", f"{name}.mask", scores, "mask"), axis=-1)
    mixed = graph.add("MatMul", f"{name}.mixed", scores, heads("value", block.value, [0, 2, 1, 3]))
    mixed = graph.add("Transpose", f"{name}.mixed_turn", mixed, perm=[0, 2, 1, 3])
    mixed = graph.reshape(f"{name}.mixed_rows", mixed, [1, CONTEXT, WIDTH])
    return graph.matmul(f"{name}.out", mixed, block.out.weight)


def _turned(graph: Graph, name: str, value: str) -> str:
    """The rotary embedding."""
    straight = graph.add("Mul", f"{name}_cosine", value, "rotary.cosine")
    low, high = graph.slice(f"{name}_low", value, 0, HEAD // 2), graph.slice(f"{name}_high", value, HEAD // 2, HEAD)
    swapped = graph.add("Concat", f"{name}_swapped", high, low, axis=-1)
    return graph.add("Add", f"{name}_turned", straight, graph.add("Mul", f"{name}_sine", swapped, "rotary.sine"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="file to write")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    options = parser.parse_args()
    output: Path = options.output
    text = load_text()
    network = train(text, options.epochs, output)
    counted = KneserNey(text.learned)
    other = float(np.concatenate([counted.bits(part, begin) for part, begin in judged(text.unseen)]).mean())
    bits = bits_a_byte(network, text)
    print(
        f"bits a byte of unseen text: {bits:.4f}; Kneser-Ney of order {ORDER}: {other:.4f}; {1 - bits / other:.1%} less"
    )
    print(f"{output}: {output.stat().st_size} bytes, {sum(p.numel() for p in network.parameters())} weights")


if __name__ == "__main__":
    main()
