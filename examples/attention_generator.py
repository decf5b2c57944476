"""The self-attentive generator of the Relay RFC (dmlc/tvm issue 1673): a loop that appends to a list until it may stop.

Run `python examples/attention_generator.py`. In the RFC's sketch the loop is Python; here it is Relay, translated from
this Python: the list is Relay's immutable List, appending makes a new one, the loop is a function that calls itself.
"""

from __future__ import annotations

import numpy as np

from relay_hw.frontend.python import Float, Int, Tensor, relay


@relay
def self_attention(query: Tensor[Float, 8], outputs: list[Tensor[Float, 8]]) -> Tensor[Float, 8]:
    # The RFC concatenates the outputs into a tensor that grows; a list keeps the shape of its elements in its type.
    weights = 0.0
    context = relay.zeros((8,))
    for output in outputs:
        weight = relay.exp(relay.sum(query * output))
        weights = weights + weight
        context = context + output * weight
    return context / weights


@relay
def decoder_step(
    state: Tensor[Float, 8], context: Tensor[Float, 8], w: Tensor[Float, (8, 8)], u: Tensor[Float, (8, 8)]
) -> tuple[Tensor[Float, 8], Tensor[Float, 8]]:
    new_state = relay.tanh(state @ w + context @ u)
    return relay.sigmoid(new_state @ w), new_state


@relay
def generator(
    state: Tensor[Float, 8], start: Tensor[Float, 8], w: Tensor[Float, (8, 8)], u: Tensor[Float, (8, 8)], limit: Int
) -> tuple[list[Tensor[Float, 8]], Tensor[Float, 8]]:
    outputs = [start]
    while True:
        context = self_attention(state, outputs)
        output, state = decoder_step(state, context, w, u)
        outputs.append(output)
        # Some condition: the outputs settle, or there are enough of them.
        if relay.sum(abs(output - context)) < 0.5 or len(outputs) >= limit:
            break
    return outputs, state


def main() -> None:
    rng = np.random.default_rng(0)
    state, start = (rng.normal(size=8).astype("float32") for _ in range(2))
    w, u = (rng.normal(0, 0.4, (8, 8)).astype("float32") for _ in range(2))
    outputs, _ = generator(state, start, w, u, 12)
    for number, output in enumerate(outputs):
        print(number, " ".join(f"{value:6.3f}" for value in output))
    print(generator.mod.astext().split("def @generator", 1)[1].split("\n}\n")[0])


if __name__ == "__main__":
    main()
