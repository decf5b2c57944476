"""Figure 4 of "Relay: A New IR for Machine Learning Frameworks" (MAPL 2018): LeNet, its loss, its training loop.

Run `python examples/figure4.py [--epochs N] [--output MODEL.json]`. The lines of the figure are kept where they mean
something; each line that had to be repaired says what was wrong with it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

# The figure has `relay` both as a decorator and as the library, and no import.
from relay_hw.frontend.python import Float, Model, Tensor, relay, relay_model


@relay_model
def lenet(x: Tensor[Float, (1, 28, 28)]) -> Tensor[Float, 10]:
    conv1 = relay.conv2d(x, num_filter=20, ksize=[1, 5, 5, 1], no_bias=False)
    tanh1 = relay.tanh(conv1)
    pool1 = relay.max_pool(tanh1, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1])
    conv2 = relay.conv2d(pool1, num_filter=50, ksize=[1, 5, 5, 1], no_bias=False)
    tanh2 = relay.tanh(conv2)
    pool2 = relay.max_pool(tanh2, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1])
    flatten = relay.flatten_layer(pool2)
    fc1 = relay.linear(flatten, num_hidden=500)
    tanh3 = relay.tanh(fc1)
    return relay.linear(tanh3, num_hidden=10)


# Was `@relay`: a function so decorated may not call one with hidden parameters, and lenet has some.
@relay_model
def loss(x: Tensor[Float, (1, 28, 28)], y: Tensor[Float, 10]) -> Float:
    return relay.softmax_cross_entropy(lenet(x), y)


# Was `training_data: Tensor[Float, (60000, 1, 28, 28)]`: the loop wants labels too, and the digits at hand are 4,000.
# The number of times that the loop goes through them is new: once through 60,000 is fifteen times through 4,000.
@relay
def train_lenet(images: Tensor[Float, (4000, 1, 28, 28)], labels: Tensor[Float, (4000, 10)], epochs: int) -> Model:
    model = relay.create_model(lenet)
    for _ in range(epochs):
        # Was `for x, y in data`: there is no `data`, and a tensor has one slice a step, not two.
        for x, y in zip(images, labels):  # noqa: B905
            model_grad = relay.grad(model, loss, (x, y))
            relay.update_model_params(model, model_grad)
    return relay.export_model(model)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5, help="times through the 4,000 digits")
    parser.add_argument("--output", type=Path, help="Relay file (.json) to write the trained model to")
    args = parser.parse_args()
    training_data, test_data = relay.datasets.mnist()
    begin = time.perf_counter()
    # Was `train_lenet(training_data)`: images and labels are two tensors.
    model = train_lenet(*training_data, args.epochs)
    seconds = time.perf_counter() - begin
    images, labels = test_data
    # Was `relay.argmax(model(test_data[0]))`: the first item of the test data is all of its images.
    print(f"the first unseen digit is a {int(relay.argmax(model(images[0])))}")
    accuracy = float(np.mean(np.argmax(model(images), axis=1) == np.argmax(labels, axis=1)))
    print(f"{accuracy:.1%} of {len(images)} unseen digits after {seconds:.0f} s of training")
    if args.output is not None:
        from relay_hw import save_json

        args.output.write_text(save_json(model.module(batch=1)))
        print(f"{args.output}: the trained model")


if __name__ == "__main__":
    main()
