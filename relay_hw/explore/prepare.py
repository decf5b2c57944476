"""Prepares what all points share: simplification, quantization in each form, accuracy of each form.

In: a float module, data, strategies. Out: `Prepared`. Texts are kept in a folder under the key of what they depend on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from relay_hw.compare.data import Samples, read_samples, single_samples
from relay_hw.compare.evaluate import Evaluator
from relay_hw.compare.job import as_given
from relay_hw.compare.measures import measure
from relay_hw.compare.mixed import prices_at
from relay_hw.compare.network import Network, prepare
from relay_hw.compare.network_work import Work, network_work
from relay_hw.compare.places import Place
from relay_hw.compare.store import Store, key_of
from relay_hw.errors import InputError
from relay_hw.explore.bench import Form, Setting
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy, find_strategy, strategy_values
from relay_hw.quantize.held_back import realize_checked
from relay_hw.quantize.prequantized import is_prequantized, realize_prequantized
from relay_hw.runtime.compile import bind_params
from relay_hw.runtime.prices import needs_prices
from relay_hw.support.progress import Progress
from relay_hw.text import load_json, save_json
from relay_hw.transform.infer_type import InferType

Array = NDArray[Any]
Data = Mapping[str, Array]


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """A network with its data: `calibration` for ranges, `test` for the accuracy of each form."""

    network: Network
    text: str
    calibration: Samples | None
    test: Samples | None


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What worker processes get; and the work, accuracy and hash of the integers of each form."""

    setting: Setting
    works: Mapping[Form, Work]
    accuracies: Mapping[Form, float]
    keys: Mapping[Form, str]


def given(
    mod: IRModule, params: Data, output: str | None, calibration: Data | None, test: Data | None, images: int | None
) -> Given:
    """The simplified network with its data in the shapes that it takes. Raises InputError."""
    network = prepare(bind_params(mod, params), output)
    inputs = network.mod["main"].params
    if network.batch > 1:
        calibration = single_samples(inputs, calibration, network.batch) if calibration is not None else None
        test = single_samples(inputs, test, network.batch) if test is not None else None
    return Given(
        network,
        save_json(network.mod),
        read_samples(inputs, calibration, "calibration data") if calibration is not None else None,
        read_samples(inputs, test, "test data", images) if test is not None else None,
    )


def found_strategies(names: Iterable[str], has_data: bool) -> dict[str, Strategy]:
    """Strategies by their names in axes. Raises QuantizeError, InputError."""
    found = {name: find_strategy(name) for name in names}
    for name, strategy in found.items():
        if strategy.needs_data and not has_data:
            raise InputError(f"strategy {name} needs calibration data: give an array for each input")
    return found


class Forms:
    """Quantizes a network in each form, or finds the stored result."""

    def __init__(
        self, given: Given, strategies: Mapping[str, Strategy], place: Place, store: Store, progress: Progress
    ) -> None:
        self._given, self._strategies, self._place = given, strategies, place
        self._store, self._progress = store, progress
        self._data = as_given(given.calibration) if given.calibration is not None else None
        self._digests = [samples and samples.digest() for samples in (given.calibration, given.test)]

    def prepared(self, forms: Sequence[Form]) -> Prepared:
        """Prepare all of these forms. Raises QuantizeError."""
        texts: dict[Form, str] = {}
        works: dict[Form, Work] = {}
        accuracies: dict[Form, float] = {}
        keys = {form: self._key(form) for form in forms}
        for form in forms:
            texts[form] = self._integers(form, keys[form])
            mod = InferType()(load_json(texts[form], "network"))
            works[form] = network_work(mod)
            if self._given.test is not None:
                accuracies[form] = self._accuracy(form, keys[form], mod, self._given.test)
        return Prepared(self._setting(texts), works, accuracies, keys)

    def _setting(self, texts: Mapping[Form, str]) -> Setting:
        network = self._given.network
        used = {name: self._strategies[name] for name, _ in texts}
        sample = {name: array[:1] for name, array in self._data.items()} if self._data is not None else None
        return Setting(self._given.text, network.output, used, texts, sample)

    def _key(self, form: Form) -> str:
        strategy = self._strategy(form)
        place = [self._place.config.sizes, self._place.memory] if needs_prices(strategy) else None
        network = self._given.network
        return key_of("integers", self._given.text, network.output, self._digests[0], strategy_values(strategy), place)

    def _strategy(self, form: Form) -> Strategy:
        return replace(self._strategies[form[0]], multiplier_bits=form[1])

    def _integers(self, form: Form, key: str) -> str:
        """The text of the quantized network."""
        found = self._store.read(f"integers {form[0]}", key)
        if found is None:
            self._progress.started(f"quantizing by {form[0]}, multipliers of {form[1]} bits")
            found = {"text": save_json(self._realized(form))}
            self._store.write(f"integers {form[0]}", key, found)
        return found["text"]

    def _realized(self, form: Form) -> IRModule:
        mod, strategy, data = self._given.network.mod, self._strategy(form), self._data
        if is_prequantized(mod):
            return realize_prequantized(mod, form[1])
        cost = prices_at(mod, strategy, data, self._place) if needs_prices(strategy) else None
        return realize_checked(mod, strategy, data, cost=cost).realized.mod

    def _accuracy(self, form: Form, key: str, mod: IRModule, test: Samples) -> float:
        """Share of correct samples, or of those that agree with float; decibels if outputs are not class scores."""
        name = f"accuracy {form[0]}"
        own = key_of("accuracy", key, self._digests[1])
        found = self._store.read(name, own)
        if found is None:
            self._progress.started(f"evaluating {form[0]} on test data")
            floats = self._floats(test)
            strategy = self._strategies[form[0]]
            evaluator = Evaluator(mod, self._given.network.output, "auto", is_integer=not strategy.simulated)
            is_classifier = test.targets is None and floats.shape[1] > 1
            quality = measure(evaluator.run(test).outputs, floats, test.labels, test.targets, is_classifier)
            score = next(s for s in (quality.top1, quality.agreement, quality.sqnr_db, math.inf) if s is not None)
            found = {"accuracy": score}
            self._store.write(name, own, found)
        return found["accuracy"]

    def _floats(self, test: Samples) -> Array:
        key = key_of("float", self._given.text, self._given.network.output, self._digests[1])
        found = self._store.read_arrays("float", key)
        if found is None:
            network = self._given.network
            outputs = Evaluator(network.mod, network.output, "numpy", is_integer=False).run(test).outputs
            found = {"outputs": outputs}
            self._store.keep_arrays("float", key, found)
        return found["outputs"]
