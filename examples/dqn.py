"""Q-learning with a network (Mnih et al., 2015) in decorated Python: a walker learns the way through a corridor.

Run `python examples/dqn.py [--rounds N]`. The corridor is numpy; the network, its loss and the slopes are Relay.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.frontend.python import Float, Tensor, relay, relay_model

CELLS = 8
DISCOUNT = 0.9
BATCH, RATE = 16, 0.02


@relay_model
def values(cell: Tensor[Float, 8]) -> Tensor[Float, 2]:
    hidden = relay.tanh(relay.linear(cell, num_hidden=24))
    return relay.linear(hidden, num_hidden=2)


@relay_model
def loss(cell: Tensor[Float, 8], wanted: Tensor[Float, 2]) -> Float:
    error = values(cell) - wanted
    return relay.sum(error * error)


# A network as a Python function, and one that is still trained.
Policy = Callable[[NDArray[np.float32]], NDArray[np.float32]]
Trained = Any


@dataclass(frozen=True)
class Step:
    """A step of the walker; `is_end` when it has left the corridor at the right, where the reward is."""

    cell: int
    action: int
    reward: float
    after: int
    is_end: bool


def step(cell: int, action: int) -> Step:
    """Action 0 goes left, as far as there is something, 1 goes right."""
    after = max(cell - 1, 0) if action == 0 else cell + 1
    is_end = after == CELLS
    return Step(cell, action, float(is_end), min(after, CELLS - 1), is_end)


def encoded(cells: list[int]) -> NDArray[np.float32]:
    return np.eye(CELLS, dtype=np.float32)[cells]


def walk(model: Policy, rng: np.random.Generator, curiosity: float) -> list[Step]:
    """An episode that takes the better action, or with `curiosity` any."""
    cell, steps = int(rng.integers(CELLS)), []
    while len(steps) < 4 * CELLS:
        is_curious = rng.random() < curiosity
        action = int(rng.integers(2)) if is_curious else int(np.argmax(model(encoded([cell])[0])))
        steps.append(step(cell, action))
        if steps[-1].is_end:
            break
        cell = steps[-1].after
    return steps


def learn(model: Trained, target: Policy, batch: list[Step]) -> None:
    """One step down the slope towards reward plus the best value that the older network sees behind."""
    cells, after = encoded([one.cell for one in batch]), encoded([one.after for one in batch])
    best, wanted = np.max(target(after), axis=1), np.array(relay.export_model(model)(cells))
    for row, one in enumerate(batch):
        wanted[row, one.action] = one.reward + (0.0 if one.is_end else DISCOUNT * best[row])
    relay.update_model_params(model, relay.grad(model, loss, (cells, wanted)), learning_rate=RATE)


def train(rounds: int, seed: int = 0) -> Policy:
    """The trained network as a Python function. The older network is renewed every other round."""
    rng, memory = np.random.default_rng(seed), []
    model = relay.create_model(values, sigma=0.3)
    target = relay.export_model(model)
    for number in range(rounds):
        memory += walk(target, rng, curiosity=max(1 - number / 40, 0.1))
        for _ in range(10):
            learn(model, target, [memory[at] for at in rng.integers(len(memory), size=BATCH)])
        if number % 2 == 1:
            target = relay.export_model(model)
    return relay.export_model(model)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100, help="episodes, each with ten steps of learning")
    found = train(parser.parse_args().rounds)(encoded(list(range(CELLS))))
    for cell, (left, right) in enumerate(found.tolist()):
        print(f"cell {cell}: left {left:.2f}, right {right:.2f}, exact {DISCOUNT ** (CELLS - 1 - cell):.2f}")


if __name__ == "__main__":
    main()
