"""Makes a failing network small. In: a recipe, and whether a recipe fails. Out: one that still fails, and nothing less.

It leaves layers out, bridges them, takes simpler hardware and smaller sizes, until nothing smaller fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.networks.recipe import Layer, Recipe
from tests.networks.shapes import Impossible, shapes

Fails = Callable[[Recipe], bool]


def reduced(recipe: Recipe, fails: Fails, most: int = 400) -> Recipe:
    """The smallest recipe found that `fails` holds for, in at most so many tries."""
    left = most
    found = recipe
    while True:
        for smaller in _smaller(found):
            if smaller == found or not _can_be(smaller):
                continue
            left -= 1
            if left < 0:
                return found
            if fails(smaller):
                found = smaller
                break
        else:
            return found


def _can_be(recipe: Recipe) -> bool:
    try:
        return len(shapes(recipe)) > 1
    except Impossible:
        return False


def _smaller(recipe: Recipe) -> Iterator[Recipe]:
    """Recipes that are a step smaller, large steps first."""
    for layer in recipe.layers:
        yield _needed(replace(recipe, results=(layer.name,)))
    for layer in recipe.layers:
        for source in layer.inputs:
            yield _needed(_bridged(recipe, layer, source))
            if {*layer.inputs} != {source}:
                yield _needed(_with_layer(recipe, replace(layer, inputs=(source,) * len(layer.inputs))))
    for name in recipe.results:
        yield _needed(replace(recipe, results=tuple(other for other in recipe.results if other != name)))
    if recipe.strategy != "int8":
        yield replace(recipe, strategy="int8")
    if recipe.resident != "off":
        yield replace(recipe, resident="off")
    if recipe.respelled:
        yield replace(recipe, respelled=False)
    for name, _ in recipe.changes:
        yield replace(recipe, changes=tuple(pair for pair in recipe.changes if pair[0] != name))
    for at, size in enumerate(recipe.shape):
        for less in _less(size, 1):
            yield replace(recipe, shape=(*recipe.shape[:at], less, *recipe.shape[at + 1 :]))
    for layer in recipe.layers:
        for smaller in _smaller_layers(layer):
            yield _with_layer(recipe, smaller)


def _with_layer(recipe: Recipe, layer: Layer) -> Recipe:
    """With this layer in the place of the one of its name."""
    return replace(recipe, layers=tuple(layer if one.name == layer.name else one for one in recipe.layers))


def _needed(recipe: Recipe) -> Recipe:
    """Without the layers that no result needs."""
    needed = set(recipe.results)
    for layer in reversed(recipe.layers):
        if layer.name in needed:
            needed |= {*layer.inputs}
    return replace(recipe, layers=tuple(layer for layer in recipe.layers if layer.name in needed))


def _bridged(recipe: Recipe, gone: Layer, source: str) -> Recipe:
    """Without a layer; what read it reads `source`."""

    def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(source if name == gone.name else name for name in names)

    layers = tuple(replace(one, inputs=renamed(one.inputs)) for one in recipe.layers if one is not gone)
    results = tuple(dict.fromkeys(name for name in renamed(recipe.results) if name != "x"))
    return replace(recipe, layers=layers, results=results)


def _smaller_layers(layer: Layer) -> Iterator[Layer]:
    for name, value in layer.sizes:
        least = 1 if name in ("kernel", "strides", "dilation", "channels", "groups", "units", "times") else 0
        for at, size in enumerate(value):
            for less in _less(size, least):
                yield layer.changed(name, (*value[:at], less, *value[at + 1 :]))


def _less(size: int, least: int) -> Iterator[int]:
    """Smaller sizes, the smallest first."""
    yield from (less for less in dict.fromkeys((least, size // 2, size - 1)) if least <= less < size)
