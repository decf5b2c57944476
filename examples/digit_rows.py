"""A loop over a sequence, trained: digits are read row by row by a cell with a gate, in Relay from end to end.

Run `python examples/digit_rows.py [--epochs N]`. The loop over the rows, its gradient and the loop that trains are one
Relay program; Relay and numpy run it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from relay_hw.frontend.python import Float, Model, Tensor, relay, relay_model


@relay_model
def reader(rows: Tensor[Float, (28, 40, 28)]) -> Tensor[Float, (40, 10)]:
    state = relay.zeros((40, 64), "float32")
    # Each step sees one row of all 40 images; its four layers are the same in every step.
    for row in rows:
        gate = relay.sigmoid(relay.linear(row, num_hidden=64) + relay.linear(state, num_hidden=64))
        new = relay.tanh(relay.linear(row, num_hidden=64) + relay.linear(state, num_hidden=64))
        state = state + gate * (new - state)
    return relay.linear(state, num_hidden=10)


@relay_model
def loss(rows: Tensor[Float, (28, 40, 28)], labels: Tensor[Float, (40, 10)]) -> Float:
    return relay.softmax_cross_entropy(reader(rows), labels)


@relay
def train(rows: Tensor[Float, (100, 28, 40, 28)], labels: Tensor[Float, (100, 40, 10)], epochs: int) -> Model:
    model = relay.create_model(reader, sigma=0.1)
    for _ in range(epochs):
        for x, y in zip(rows, labels):  # noqa: B905
            relay.update_model_params(model, relay.grad(model, loss, (x, y)), learning_rate=0.5)
    # Large steps end anywhere around the best weights; smaller ones settle there.
    for _ in range(3):
        for x, y in zip(rows, labels):  # noqa: B905
            relay.update_model_params(model, relay.grad(model, loss, (x, y)), learning_rate=0.05)
    return relay.export_model(model)


def batches(images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """40 images at a time, the rows in front."""
    rows = images.reshape(-1, 40, 28, 28).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(rows), labels.reshape(-1, 40, 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12, help="times through the digits before three with small steps")
    args = parser.parse_args()
    training_data, test_data = relay.datasets.mnist()
    begin = time.perf_counter()
    model = train(*batches(*training_data), args.epochs)
    seconds = time.perf_counter() - begin
    right = [np.argmax(model(x), axis=-1) == np.argmax(y, axis=-1) for x, y in zip(*batches(*test_data), strict=True)]
    print(f"{np.mean(right):.1%} of {np.size(right)} unseen digits after {seconds:.0f} s of training")


if __name__ == "__main__":
    main()
