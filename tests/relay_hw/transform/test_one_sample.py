"""Batches split into samples: only where every sample alone gives what it gives in its batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from relay_hw import op
from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Expr, Function, If, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.op import const, nn
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.one_sample import OneSample, one_sample

N = 3
SHAPE = (N, 4, 6, 6)
RNG = np.random.default_rng(0)
WEIGHT = const(RNG.normal(size=(4, 4, 3, 3)).astype(np.float32))
ROWS = const(RNG.normal(size=(5, 6)).astype(np.float32))
CHANNELS = const(RNG.normal(size=4).astype(np.float32))

Make = Callable[[Expr], Expr]


def network(make: Make, dtype: str = "float32") -> IRModule:
    x = Var("x", TensorType(SHAPE, dtype))
    return InferType()(IRModule({"main": Function([x], make(x))}))


@dataclass(frozen=True)
class Same:
    """A constant that is the same for all samples."""

    shape: tuple[int, ...]

    def expr(self) -> Expr:
        one = RNG.normal(size=self.shape).astype(np.float32)
        return const(np.broadcast_to(one, (N, *self.shape)).copy())


def attention(x: Expr) -> Expr:
    """Heads beside samples on one axis, as transformers are exported."""
    heads = op.reshape(x, (N * 2, 2, 36))
    scores = nn.softmax(nn.batch_matmul(heads, heads), axis=-1)
    mixed = nn.batch_matmul(scores, heads, transpose_b=False)
    return op.reshape(op.add(mixed, heads), SHAPE)


KEPT: dict[str, Make] = {
    "conv": lambda x: nn.relu(nn.bias_add(nn.conv2d(x, WEIGHT, padding=(1, 1)), CHANNELS)),
    "pools": lambda x: nn.global_avg_pool2d(nn.max_pool2d(x, (2, 2), (2, 2))),
    "flatten": lambda x: nn.softmax(nn.batch_flatten(x)),
    "flatten and rows": lambda x: op.reshape(op.reshape(x, (N, -1)), (N, 24, 6)),
    "merged rows": lambda x: op.reshape(nn.dense(op.reshape(x, (N * 24, 6)), ROWS), (N, 24, 5)),
    "samples inside": lambda x: op.reshape(op.exp(op.reshape(op.transpose(x, (1, 0, 2, 3)), (4 * N, 36))), (4, N, 36)),
    "moved": lambda x: op.transpose(op.mean(x, (2, 3)), (1, 0)),
    "pad": lambda x: nn.pad(x, ((0, 0), (0, 1), (1, 1), (0, 0))),
    "slices": lambda x: op.strided_slice(x, (0, 1, 5), (N, 3, -7), (1, 1, -2)),
    "slice of sizes": lambda x: op.strided_slice(x, (0, 1), (-1, 2), slice_mode="size"),
    "joins": lambda x: op.concatenate([x, op.exp(x), Same((4, 6, 6)).expr()], 1),
    "stack": lambda x: op.sum(op.stack([x, op.exp(x)], 0), (0,)),
    "constants": lambda x: op.add(op.multiply(x, Same((1, 6, 1)).expr()), op.reshape(CHANNELS, (4, 1, 1))),
    "split": lambda x: op.multiply(op.split(x, 2, 1)[0], op.split(x, 2, 1)[1]),
    "norm": lambda x: nn.layer_norm(x, const(np.ones(6, np.float32)), const(np.zeros(6, np.float32))),
    "instance norm": lambda x: nn.instance_norm(x, CHANNELS, CHANNELS),
    "batch norm": lambda x: nn.batch_norm(x, CHANNELS, CHANNELS, CHANNELS, op.abs(CHANNELS))[0],
    "prelu": lambda x: nn.prelu(x, CHANNELS),
    "take": lambda x: op.take(x, const(np.array([2, 0, 1])), 1),
    "sorted": lambda x: op.cumsum(op.sort(x, axis=2), axis=3),
    "squeezed": lambda x: op.squeeze(op.expand_dims(op.max(x, (1,), keepdims=True), 0)),
    "upsampled": lambda x: nn.upsampling(x, 2, 2),
    "broadcast": lambda x: op.broadcast_to(op.mean(x, (1,), keepdims=True), SHAPE),
    "broadcast like": lambda x: op.broadcast_to_like(op.mean(x, (1,), keepdims=True), op.exp(x)),
    "cast like": lambda x: op.cast_like(op.exp(x), x),
    "attention": attention,
    "transformed": lambda x: op.layout_transform(x, "NCHW", "NHWC"),
    "tiled": lambda x: op.tile(x, (1, 1, 2, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_each_sample_alone_gives_its_part_of_the_batch(name: str) -> None:
    module = network(KEPT[name])
    found = one_sample(module)
    assert isinstance(found, OneSample), found
    assert found.batch == N and found.inputs == (0,)
    (axis,) = found.outputs
    assert axis is not None
    x = RNG.normal(size=SHAPE).astype(np.float32)
    whole = Interpreter(module).call_global("main", [x])
    parts = [Interpreter(found.mod).call_global("main", [x[k : k + 1]]) for k in range(N)]
    np.testing.assert_allclose(np.concatenate(parts, axis), whole, rtol=1e-5, atol=1e-6)


DIFFERENT = const(RNG.normal(size=(N, 1, 1, 1)).astype(np.float32))


def square(x: Expr) -> Expr:
    """[N, N], samples first."""
    return op.strided_slice(op.mean(x, (2, 3)), (0,), (N,), (1,), (1,))


MIXED: dict[str, tuple[Make, str]] = {
    "type of samples": (
        lambda x: op.add(x, op.reshape(op.cast_like(CHANNELS, x), (4, 1, 1))),
        "cast_like reads samples for their element type",
    ),
    "mean": (lambda x: op.mean(x, (0,)), "mean joins what lies along axis 0, where the samples lie"),
    "sum of all": (lambda x: op.sum(x), "sum joins what lies along axis 0"),
    "softmax": (lambda x: nn.softmax(x, 0), "nn.softmax works along axis 0, where the samples lie"),
    "reverse": (lambda x: op.reverse(x, 0), "reverse works along axis 0"),
    "cumsum": (lambda x: op.cumsum(x), "cumsum works along axis 0"),
    "concatenate": (lambda x: op.concatenate([x, x], 0), "concatenate works along axis 0"),
    "slice": (lambda x: op.strided_slice(x, (1,), (3,), (1,), (0,)), "strided_slice takes a part of axis 0"),
    "backwards": (lambda x: op.strided_slice(x, (-1,), (-9,), (-1,), (0,)), "strided_slice takes a part of axis 0"),
    "take": (lambda x: op.take(x, const(np.array([0, 2])), 0), "take works along axis 0"),
    "pad": (lambda x: nn.pad(x, ((1, 0), (0, 0), (0, 0), (0, 0))), "nn.pad works along axis 0"),
    "product": (lambda x: nn.dense(nn.batch_flatten(x), nn.batch_flatten(x)), "nn.dense reads samples as weights"),
    "constants": (lambda x: op.multiply(x, DIFFERENT), "multiply reads numbers that differ from sample to sample"),
    "two axes": (lambda x: op.add(square(x), op.transpose(square(x), (1, 0))), "add pairs samples that lie along diff"),
    "spread": (lambda x: op.reshape(x, (2, 216)), "reshape spreads samples over several axes"),
    "flattened": (lambda x: op.topk(op.reshape(x, (-1,)), 2)[0], "topk works along axis 0"),
    "unknown": (lambda x: op.argwhere(x), "argwhere is not known to keep samples apart"),
    "inside": (lambda x: op.reshape(op.transpose(x, (1, 0, 2, 3)), (4 * N, 36)), "output 0 does not hold samples one"),
    "branch": (lambda x: If(op.greater(op.max(x), const(np.float32(0))), x, x), "main must be a graph of operator"),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXED)
def test_operators_that_mix_samples_are_named(name: str) -> None:
    make, sentence = MIXED[name]
    found = one_sample(network(make))
    assert isinstance(found, str)
    assert found.startswith(f"the {N} samples of a batch cannot run one by one: ") and sentence in found


def test_inputs_without_samples_are_shared() -> None:
    x, scale = Var("x", TensorType(SHAPE, "float32")), Var("scale", TensorType((4, 1, 1), "float32"))
    both = Tuple([op.multiply(x, scale), op.add(scale, scale)])
    found = one_sample(InferType()(IRModule({"main": Function([x, scale], both)})))
    assert isinstance(found, OneSample)
    assert found.inputs == (0, None) and found.outputs == (0, None)


@pytest.mark.parametrize("shape", [(1, 4, 6, 6), (5, 8), (), (3, 5, 8)])
def test_rows_and_single_images_stay(shape: tuple[int, ...]) -> None:
    """A row needs no launch of its own: the accelerator takes many at once."""
    x = Var("x", TensorType(shape, "float32"))
    assert one_sample(InferType()(IRModule({"main": Function([x], op.exp(x))}))) is None
