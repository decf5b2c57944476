"""Decorated functions compute what Python computes; errors show the Python line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.errors import InputError, RelayHwError, TypeCheckError, UnsupportedError
from relay_hw.frontend.python import Float, Float64, Int, Model, Tensor, relay, relay_model
from relay_hw.op.random import KEY, threefry_key

THREE = 3


@relay
def arithmetic(x: Float, n: int) -> Float:
    y = -x * 2 + 1.5
    y /= 4
    y -= n
    z = n // 2 + n % 3 - (n + 1) ** 2
    return abs(y) + z + max(x, y, 0.5) - min(x, 1) + float(n) * THREE


@relay
def decisions(x: Float, n: int) -> Float:
    if x > 1 and n > 0:
        y = x
    elif not x < -1 or n == 3:
        y = x * 2
        n = n + 1
    else:
        y = -x
    y = y if 0 < y <= 4 else 0.25
    return y + n


@relay
def early(x: Float, n: int) -> Float:
    if n == 0:
        return x
    y = x + 1
    if x > 0:
        if n > 3:
            return y * y
        y = y * 3
    else:
        y = y - 1
    return y * n


@relay
def loops(x: Float, n: int) -> Float:
    total = 0
    for i in range(n):
        if i == 3:
            continue
        total = total + x * i
        if total > 50:
            break
    for j in range(n, 0, -2):
        k = 0
        while k < j:
            total = total + k
            k += 1
    return total


@relay
def leaving(x: Float, n: int) -> Float:
    for i in range(n):
        for j in range(i):
            if x * j > 6:
                return x * i
            if j > 4:
                break
        x = x + 0.5
    return -x


@relay
def endless(x: Float, n: int) -> Float:
    while True:
        x = x + 1.5
        if x > n:
            break
    return x


@relay
def structures(x: Float, n: int) -> Float:
    pair = (x, (n, x + 1))
    a, (b, c) = pair
    d = pair[1][1] + pair[-2]
    items = [a, c]
    items.append(d)
    total = items[0] * len(items)
    for index, item in enumerate(items + [x]):
        total = total + item * index
    for factor in (2, 0.5):
        total = total * factor
    for left, right in zip([1, 2, 3], items):  # noqa: B905
        total = total - left * right
    return total + b + len(pair)


@relay
def closures(x: Float, n: int) -> Float:
    scale = x + 1

    def scaled(y: Float) -> Float:
        return y * scale

    def many(y: Float, k: int) -> Float:
        if k <= 0:
            return y
        return many(scaled(y), k - 1)

    return many(x, n) + scaled(2)


@relay
def collected(x: Float, n: int) -> list[Float]:
    found = []
    for i in range(n):
        found.append(x * i)
    return found


@relay
def helper(x: Float) -> Float:
    return x * x


@relay
def recursive(x: Float, n: int) -> Float:
    if n <= 0:
        return helper(1)
    return recursive(x, n - 1) * 0.5 + helper(x)


PROGRAMS = [arithmetic, decisions, early, loops, leaving, endless, structures, closures, collected, recursive]
NUMBERS = st.floats(-3, 3, width=32).map(lambda x: round(x * 8) / 8)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
@settings(max_examples=30)
@given(NUMBERS, st.integers(0, 9))
def test_programs_compute_what_python_computes(program: Any, x: float, n: int) -> None:
    # Python itself runs the same text, the helpers in it too.
    plain = dict(program.__wrapped__.__globals__)
    plain.update({one.name: one.__wrapped__ for one in (*PROGRAMS, helper)})
    function = program.__wrapped__
    python = type(function)(function.__code__, plain)
    np.testing.assert_allclose(program(x, n), python(x, n), rtol=1e-5, atol=1e-5)


@relay
def tensors(x: Tensor[Float, (3, 2)], w: Tensor[Float, (2, 4)]) -> Tensor[Float, 4]:
    total = relay.zeros((4,))
    for row in x:
        total = total + row @ w if row[0] > 0 else total * 2
    return relay.tanh(total) + x[-1][1] + len(x) + x.shape[1]


@given(st.integers(0, 2**20))
@settings(max_examples=10)
def test_tensors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(3, 2)).astype("float32"), rng.normal(size=(2, 4)).astype("float32")
    expected = np.zeros(4)
    for row in x:
        expected = expected + row @ w if row[0] > 0 else expected * 2
    np.testing.assert_allclose(tensors(x, w), np.tanh(expected) + x[-1][1] + 3 + 2, rtol=1e-4, atol=1e-5)


@relay
def of_lists(xs: list[Float], pairs: list[tuple[Float, int]]) -> tuple[Float, list[Float]]:
    total = 0.0
    doubled: list[Float] = []
    for x in xs:
        doubled.append(x * 2)
    for a, b in pairs:
        if b > 1:
            total += a
    return total, doubled


def test_lists_go_in_and_come_out() -> None:
    total, doubled = of_lists([1.0, 2.5], [(1.0, 1), (2.0, 2), (4.0, 5)])
    assert total == 6 and doubled == [2.0, 5.0]
    assert of_lists([], [])[1] == []


def test_deep_recursion_falls_back_to_the_interpreter() -> None:
    assert abs(float(recursive(1.0, 20_000)) - 2.0) < 1e-3


def test_operators_compute_on_arrays_outside() -> None:
    assert int(relay.argmax(np.array([1.0, 3.0, 2.0]))) == 1
    assert relay.tanh(np.zeros(2)).tolist() == [0, 0]
    assert relay.conv2d and not hasattr(relay, "conv9d")


@relay
def spaces(x: Tensor[Float, (1, 2, 4, 4)], w: Tensor[Float, (3, 2, 3, 3)]) -> Tensor[Float, (1, 3, 2, 8)]:
    y = relay.nn.relu(relay.nn.conv2d(x, w, padding=1))
    return relay.image.resize2d(y, (2, 8), method="nearest_neighbor", coordinate_transformation_mode="asymmetric")


@relay
def noisy(x: Tensor[Float, (3,)], key: KEY) -> Tensor[Float, (3,)]:
    key, noise = relay.random.uniform(key, (3,))
    key, more = relay.random.uniform(key, (3,))
    return x + noise * more


def test_operators_with_names_of_two_parts() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(1, 2, 4, 4)).astype("float32"), rng.normal(size=(3, 2, 3, 3)).astype("float32")
    whole = np.maximum(relay.nn.conv2d(x, w, padding=1), 0)
    np.testing.assert_allclose(spaces(x, w), whole[:, :, ::2][:, :, :, [0, 0, 1, 1, 2, 2, 3, 3]], rtol=1e-5)
    key = threefry_key(4).data
    first, second = noisy(np.zeros(3, "float32"), key), noisy(np.zeros(3, "float32"), key)
    assert np.array_equal(first, second) and first.min() > 0 and first.max() < 1
    assert repr(relay.nn) == "<operators relay.nn>" and repr(relay.nn.relu) == "<relay operator nn.relu>"
    assert not hasattr(relay.nn, "conv9d") and not hasattr(relay.nn, "annotations")


def test_the_module_is_relay_text() -> None:
    import relay_hw

    text = loops.mod.astext()
    assert "def @loops(%x: float32, %n: int32) -> float32" in text
    assert relay_hw.fromtext(text).astext() == text


# Errors


def message(function: Callable[..., Any], decorate: Callable[..., Any] = relay) -> tuple[RelayHwError, str]:
    with pytest.raises((UnsupportedError, TypeCheckError)) as caught:
        decorated = decorate(function)
        decorated.translated()
    error = caught.value
    assert error.span is not None and error.span.source == "test_python.py"
    return error, error.detail


def test_an_error_shows_the_line() -> None:
    def wrong(x: Float) -> Float:
        y = x + 1
        return y @ unknown  # noqa: F821

    error, detail = message(wrong)
    assert error.message == "name unknown must be defined before it is used"
    assert detail.splitlines()[0].strip().startswith("return y @ unknown")
    assert detail.splitlines()[1] == " " * 19 + "^" * 7
    assert error.span is not None and error.span.column == 20


def no_annotation(x) -> Float:  # type: ignore[no-untyped-def]
    return x


def bad_annotation(x: str) -> Float:
    return 1.0


def unknown_annotation(x: Tensr[Float, 3]) -> Float:  # type: ignore[name-defined]  # noqa: F821
    return 1.0


def comprehension(x: Float) -> Float:
    return [x for _ in range(3)]  # type: ignore[return-value]


def imports(x: Float) -> Float:
    import math

    return x * math.pi


def stores(x: Tensor[Float, 3]) -> Float:
    x[0] = 1.0  # type: ignore[index]
    return 1.0


def mixed(x: Float, y: Tensor[Float, 3]) -> Float:
    return x if x > 0 else y  # type: ignore[return-value]


def shapes(x: Tensor[Float, 3], y: Tensor[Float, 4]) -> Tensor[Float, 3]:
    return x + y  # type: ignore[operator]


def changes_type(x: Float) -> Float:
    y = x
    for _ in range(3):
        y = (y, y)  # type: ignore[assignment]
    return y


def one_way(x: Float) -> Float:
    if x > 0:
        y = x
    return y


def late_capture(x: Float) -> Float:
    k = 1.0

    def inner(y: Float) -> Float:
        return y * k

    k = 2.0
    return inner(x)


def connected(x: Float, y: Float) -> Float:
    return x and y


last = 5.0


def behind_loop(x: Float) -> Float:
    for last in range(3):
        x = x + last
    return x + last


def calls_python(x: Float) -> Float:
    return np.exp(x)


def keyword(x: Float) -> Float:
    return relay.clip(x, a_min=x, a_max=1.0, wrong=3)


def too_many(x: Float) -> Float:
    return helper(x, x)


def wrong_argument(x: Tensor[Float, 3]) -> Float:
    return helper(x)


def wrong_result(x: Float) -> int:
    return x


def hidden(x: Tensor[Float, 3]) -> Tensor[Float, 2]:
    return relay.linear(x, num_hidden=2)


def open_list(x: Float) -> list[Float]:
    found = []
    if x > 0:
        return [x]
    return found + found


def jumps(x: Float) -> Float:
    for k in (1, 2):
        if x > k:
            break
    return x


def default(x: Float, y: Float = 1.0) -> Float:
    return x + y


def index(x: tuple[Float, int]) -> Float:
    return x[2]


def unpack(x: tuple[Float, int]) -> Float:
    a, b, c = x  # noqa: RUF059
    return a


def through(x: Float) -> Float:
    for y in x:
        x = y
    return x


def sliced(x: Tensor[Float, 3]) -> Tensor[Float, 2]:
    return x[1:]


def condition(x: Tensor[Float, 3]) -> Float:
    return 1.0 if x else 2.0


def attribute(x: Tensor[Float, 3]) -> Float:
    return x.T


SENTENCES = [
    (no_annotation, "parameter x must have an annotation such as x: Float"),
    (bad_annotation, r"annotation must be Float, Int, Bool, Tensor\[...\], tuple\[...\] or list\[...\], not str"),
    (unknown_annotation, r"annotation Tensr\[Float, 3\] must be a type: name 'Tensr' is not defined"),
    (comprehension, "list comprehension must not be used in a relay function"),
    (imports, "import must not be used in a relay function"),
    (stores, r"x\[0\] must be a name: relay values do not change"),
    (mixed, r"branches of a choice must have one type, not float32 and Tensor\[\(3\), float32\]"),
    (shapes, "the shapes of add's arguments must broadcast"),
    (changes_type, r"variable y must keep its type through the loop, float32, not become \(float32, float32\)"),
    (one_way, "variable y must be assigned before it is used, on every path to here"),
    (late_capture, "variable k, which inner reads, must be assigned only once"),
    (connected, r"operands of and, or must be truth values such as x > 0, not float32"),
    (behind_loop, "variable last must be assigned before it is used"),
    (calls_python, r"called function must be of relay, or decorated with it, not np.exp"),
    (keyword, "arguments of relay.clip must fit: got an unexpected keyword argument 'wrong'"),
    (too_many, "helper must get 1 argument, not 2"),
    (wrong_argument, r"argument 1 of helper must be float32, not Tensor\[\(3\), float32\]"),
    (wrong_result, "result of wrong_result must be int32, not float32"),
    (hidden, "relay.linear has hidden parameters: hidden, which calls it, must be decorated with relay_model"),
    (open_list, r"empty list must get an annotation such as xs: list\[Float\] = \[\]"),
    (jumps, "loop over a tuple must not be exited by break, continue or return"),
    (default, "parameters of default must be plain"),
    (index, r"index of a tuple of 2 must be a number in \[-2, 2\)"),
    (unpack, "value must be a tuple of 3 to be unpacked"),
    (through, "tensor of a for must have a first axis of known size, not float32"),
    (sliced, "slice must not be used in a relay function: use relay.strided_slice"),
    (condition, r"condition must be a number or a truth value, not Tensor\[\(3\), float32\]"),
    (attribute, "attribute of a relay value must be shape, dtype or ndim, not T"),
]


@pytest.mark.parametrize(("function", "sentence"), SENTENCES, ids=[case[0].__name__ for case in SENTENCES])
def test_refusals(function: Callable[..., Any], sentence: str) -> None:
    import re

    error, detail = message(function)
    assert re.search(sentence, error.message), error.message
    assert "^" in detail and detail.splitlines()[0].strip()


def test_recursion_needs_an_annotation_of_the_result() -> None:
    @relay
    def down(n: int):  # type: ignore[no-untyped-def]
        return 0 if n == 0 else down(n - 1)

    with pytest.raises(UnsupportedError, match="down, which calls itself, must have an annotation of its result"):
        down.translated()


def test_wrong_calls() -> None:
    with pytest.raises(InputError, match="arithmetic must get 2 arguments, not 1"):
        arithmetic(1.0)
    with pytest.raises(InputError, match="input x of @helper must be float32, not"):
        helper(np.ones(3, "float32"))
    with pytest.raises(UnsupportedError, match="tiny has hidden parameters: make a model of it"):
        tiny(np.ones(3))


# Models


@relay_model
def tiny(x: Tensor[Float64, 3]) -> Tensor[Float64, 2]:
    first = relay.linear(x, num_hidden=4)
    return relay.linear(relay.tanh(first), num_hidden=2)


@relay_model
def twice(x: Tensor[Float64, 3]) -> Tensor[Float64, 2]:
    return tiny(x) * tiny(x)


@relay_model
def tiny_loss(x: Tensor[Float64, 3], y: Tensor[Float64, 2]) -> Float64:
    return relay.softmax_cross_entropy(tiny(x), y)


@relay_model
def bent(x: Tensor[Float64, 3]) -> Tensor[Float64, 2]:
    y = relay.linear(x, num_hidden=2)
    if relay.sum(y) > 0:
        y = relay.tanh(y)
    return y


@relay_model
def bent_loss(x: Tensor[Float64, 3], y: Tensor[Float64, 2]) -> Float64:
    found = bent(x)
    return relay.sum((found - y) * (found - y))


def test_each_call_has_parameters_of_its_own() -> None:
    names = [name for name, _ in tiny.translated().hidden]
    assert names == ["first.weight", "first.bias", "result.weight", "result.bias"] or len(set(names)) == 4
    hidden_types = [ty.static_shape for _, ty in tiny.translated().hidden]
    assert hidden_types == [(4, 3), (4,), (2, 4), (2,)]
    assert [ty.static_shape for _, ty in twice.translated().hidden] == hidden_types * 2
    assert len({name for name, _ in twice.translated().hidden}) == 8


def test_parameters_are_small_and_normal() -> None:
    model = relay.create_model(tiny, seed=3, sigma=0.1)
    again = relay.create_model(tiny, seed=3, sigma=0.1)
    assert all(np.array_equal(a, b) for a, b in zip(model.params, again.params, strict=True))
    whole = np.concatenate([param.ravel() for param in model.params])
    assert 0.05 < whole.std() < 0.2 and abs(whole.mean()) < 0.1


@pytest.mark.parametrize(("function", "loss"), [(tiny, tiny_loss), (bent, bent_loss)], ids=["straight", "if"])
def test_gradients_are_what_small_steps_show(function: Any, loss: Any) -> None:
    model = relay.create_model(function, seed=1, sigma=0.7)
    x, y = np.array([0.4, -1.0, 2.0]), np.array([0.25, 0.75])
    slopes = relay.grad(model, loss, (x, y))
    value = lossy(loss, model, x, y)
    for at, slope in enumerate(slopes):
        assert slope.shape == model.params[at].shape
        for place in np.ndindex(slope.shape):
            kept = model.params[at][place]
            model.params[at][place] = kept + 1e-6
            up = lossy(loss, model, x, y)
            model.params[at][place] = kept
            np.testing.assert_allclose(slope[place], (up - value) / 1e-6, rtol=1e-3, atol=1e-4)


@relay_model
def swept(items: list[Tensor[Float64, 3]], count: Int) -> Tensor[Float64, 2]:
    state = relay.zeros((2,), "float64")
    for item in items:
        state = relay.tanh(relay.linear(item, num_hidden=2) + relay.linear(state, num_hidden=2))
    step = 0
    while step < count:
        state = state * state
        step = step + 1
    return state


@relay_model
def swept_loss(items: list[Tensor[Float64, 3]], count: Int) -> Float64:
    found = swept(items, count)
    return relay.sum(found * found)


@relay
def train_swept(items: list[Tensor[Float64, 3]], count: Int, steps: Int) -> Model:
    model = relay.create_model(swept, sigma=0.7)
    for _ in range(steps):
        relay.update_model_params(model, relay.grad(model, swept_loss, (items, count)), learning_rate=0.1)
    return relay.export_model(model)


def test_loops_over_sequences_of_any_length_are_differentiated() -> None:
    model = relay.create_model(swept, seed=1, sigma=0.7)
    rng = np.random.default_rng(2)
    for length, count in ((0, 0), (1, 1), (3, 1), (4, 0)):
        items = [rng.normal(size=3) for _ in range(length)]

        def value(items: Any = items, count: int = count) -> float:
            return float(np.sum(model(items, np.int32(count)) ** 2))

        slopes = relay.grad(model, swept_loss, (items, np.int32(count)))
        for param, slope in zip(model.params, slopes, strict=True):
            for place in np.ndindex(param.shape):
                kept = param[place]
                param[place] = kept + 1e-6
                up = value()
                param[place] = kept
                np.testing.assert_allclose(slope[place], (up - value()) / 1e-6, rtol=1e-3, atol=1e-5)


def test_a_loop_over_a_list_trains_in_one_program() -> None:
    items = [np.linspace(-1, 1, 3) * scale for scale in (1, 2, 0.5)]
    start, end = (train_swept(items, np.int32(0), np.int32(steps))(items, np.int32(0)) for steps in (0, 40))
    assert np.sum(end**2) < 0.1 * np.sum(start**2)


def lossy(loss: Any, model: Any, x: np.ndarray, y: np.ndarray) -> float:
    from relay_hw.frontend.python.functions import Runner

    return float(Runner(loss.module(), loss.name)(x, y, *model.params))


def test_batches_give_the_mean() -> None:
    model = relay.create_model(tiny, seed=1, sigma=0.7)
    rng = np.random.default_rng(0)
    xs, ys = rng.normal(size=(5, 3)), np.eye(2)[rng.integers(0, 2, 5)]
    together = relay.grad(model, tiny_loss, (xs, ys))
    alone = [relay.grad(model, tiny_loss, pair) for pair in zip(xs, ys, strict=True)]
    for at, slope in enumerate(together):
        np.testing.assert_allclose(slope, np.mean([one[at] for one in alone], axis=0), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(model(xs), [model(x) for x in xs])


@relay
def train(xs: Tensor[Float64, (6, 3)], ys: Tensor[Float64, (6, 2)], epochs: int) -> Model:
    model = relay.create_model(tiny, seed=2, sigma=0.5)
    for _ in range(epochs):
        for x, y in zip(xs, ys):  # noqa: B905
            relay.update_model_params(model, relay.grad(model, tiny_loss, (x, y)), learning_rate=0.5)
    return relay.export_model(model)


def test_training_in_relay_is_training_in_python() -> None:
    rng = np.random.default_rng(1)
    xs = rng.normal(size=(6, 3))
    ys = np.eye(2)[(xs[:, 0] > 0).astype(int)]
    trained = train(xs, ys, 8)
    model = relay.create_model(tiny, seed=2, sigma=0.5)
    for _ in range(8):
        for x, y in zip(xs, ys, strict=True):
            relay.update_model_params(model, relay.grad(model, tiny_loss, (x, y)), learning_rate=0.5)
    for a, b in zip(trained.params, model.params, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    assert (np.argmax(trained(xs), 1) == ys.argmax(1)).all()
    assert "fn (" in train.mod.astext()


def test_an_exported_model_stays_and_is_a_module() -> None:
    from relay_hw.interp import evaluate

    model = relay.create_model(tiny)
    exported = relay.export_model(model)
    x = np.array([1.0, 2.0, 3.0])
    before = exported(x)
    relay.update_model_params(model, [np.ones_like(param) for param in model.params], learning_rate=1.0)
    assert np.array_equal(exported(x), before) and not np.array_equal(model(x), before)
    np.testing.assert_allclose(evaluate(exported.module(), [x]), before)
    batch = exported.module(batch=1)
    assert [str(p.type) for p in batch["main"].params] == ["Tensor[(1, 3), float64]"]
    np.testing.assert_allclose(evaluate(batch, [x[None]])[0], before)


def test_refusals_of_models() -> None:
    model = relay.create_model(tiny)
    with pytest.raises(InputError, match="create_model must get a function decorated with relay_model, not"):
        relay.create_model(helper)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="gradients must be those of the 4 parameters, not 1"):
        relay.update_model_params(model, [np.ones(2)])
    with pytest.raises(UnsupportedError, match="loss bent_loss must call the model tiny once, and nothing else"):
        relay.grad(model, bent_loss, (np.ones(3), np.ones(2)))


def test_layers_take_samples_and_batches() -> None:
    @relay_model
    def image(x: Tensor[Float, (2, 6, 6)]) -> Tensor[Float, 3]:
        y = relay.conv2d(x, num_filter=4, ksize=3, strides=[1, 1], padding=1, no_bias=True)
        y = relay.avg_pool(relay.max_pool(relay.relu(y), ksize=[1, 2, 2, 1]), ksize=2, strides=2)
        return relay.linear(relay.flatten_layer(y), 3)

    model = relay.create_model(image)
    xs = np.random.default_rng(0).normal(size=(4, 2, 6, 6)).astype("float32")
    np.testing.assert_allclose(model(xs), [model(x) for x in xs], rtol=1e-5, atol=1e-6)
    assert [ty.static_shape for _, ty in image.translated().hidden] == [(4, 2, 3, 3), (3, 16), (3,)]

    def wrong(x: Tensor[Float, (2, 6)]) -> Tensor[Float, 3]:
        return relay.conv2d(x, num_filter=4, ksize=3)

    error, _ = message(wrong, relay_model)
    assert error.message.startswith("data of conv2d must be [channels, height, width], or a batch of it, not")


def test_annotations() -> None:
    assert str(Tensor[Float, (2, None)].type) == "Tensor[(2, ?), float32]"
    assert str(Tensor[Int, ()].type) == "int32"
    with pytest.raises(
        TypeError, match="element type of Tensor must be Float, Float64, Int or Bool, not <class 'str'>"
    ):
        Tensor[str, 3]
    with pytest.raises(TypeError, match="shape of Tensor must be of sizes, not -1"):
        Tensor[Float, -1]
