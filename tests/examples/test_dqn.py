"""The Q-learning example finds the exact values of its corridor."""

from __future__ import annotations

import numpy as np

from examples import dqn


def test_steps_end_behind_the_last_cell() -> None:
    assert dqn.step(0, 0) == dqn.Step(0, 0, 0.0, 0, False)
    assert dqn.step(dqn.CELLS - 1, 1) == dqn.Step(dqn.CELLS - 1, 1, 1.0, dqn.CELLS - 1, True)


def test_the_walker_learns_the_way_and_what_it_is_worth() -> None:
    found = dqn.train(rounds=60)(dqn.encoded(list(range(dqn.CELLS))))
    exact = dqn.DISCOUNT ** np.arange(dqn.CELLS)[::-1]
    assert np.argmax(found, axis=1).tolist() == [1] * dqn.CELLS
    np.testing.assert_allclose(found[:, 1], exact, atol=0.1)
    np.testing.assert_allclose(found[1:, 0], exact[:-1] * dqn.DISCOUNT, atol=0.15)
