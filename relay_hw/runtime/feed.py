"""Feeds outputs of a sample back as inputs of the next one, for models with states.

In: pairs of an output and an input, a build's records, what a user gives. Out: samples of every input; those of a state
have the first step's alone, and grow with the steps. An output that is longer than its input along one axis is a cache
with what is new behind it: its last positions go in, the oldest drop out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.nodes import Value
from relay_hw.errors import InputError
from relay_hw.runtime.manifest import Manifest, TensorInfo
from relay_hw.runtime.ports import Samples, read_samples, single_samples
from relay_hw.support.names import one_of

# Name of the output by name of the input that takes it.
Feeds = Mapping[str, str]


def check_feeds(pairs: Sequence[tuple[str, str]], rows: Manifest) -> Feeds:
    """Check pairs (output, input), `*` in both standing for the same part of a name. Raises InputError for unknown
    names, repeated inputs and different types.
    """
    found: dict[str, str] = {}
    for output, name in _spelled_out(pairs, rows):
        given, taken = _named(output, rows.outputs, "output"), _named(name, rows.inputs, "input")
        if name in found:
            raise InputError(f"input {name} must be fed by one output, not by {found[name]} and {output}")
        _check_types(given, taken)
        found[name] = output
    return found


def _spelled_out(pairs: Sequence[tuple[str, str]], rows: Manifest) -> Iterator[tuple[str, str]]:
    """The pairs, one with `*` as a pair for each output that it fits."""
    for output, name in pairs:
        if not output.count("*") == name.count("*") == 1:
            yield output, name
            continue
        begin, end = output.split("*")
        parts = [row.name[len(begin) : len(row.name) - len(end)] for row in rows.outputs if _fits(row.name, begin, end)]
        if not parts:
            raise InputError(one_of("output that is fed back", [row.name for row in rows.outputs], output))
        for part in parts:
            yield output.replace("*", part), name.replace("*", part)


def _fits(name: str, begin: str, end: str) -> bool:
    return len(name) > len(begin) + len(end) and name.startswith(begin) and name.endswith(end)


def read_steps(
    rows: Manifest, inputs: Mapping[str, Any], feeds: Feeds, limit: int | None
) -> tuple[int, dict[str, Any]]:
    """Number of steps in the data, and samples by input, batches in parts; of a state only those of the first step.

    That is zero, or the first sample where the data have the input. Where nothing but states goes in, there are `limit`
    steps. Raises InputError.
    """
    free = [row for row in rows.inputs if row.name not in feeds]
    states = [row for row in rows.inputs if row.name in feeds]
    count, found = read_samples(free, inputs, rows.is_quantized)
    if states and not free:
        if limit is None:
            raise InputError("the number of samples must be given where every input is fed back")
        count = limit
    for row in states:
        found[row.name] = first_state(row, inputs, rows.is_quantized)
    parts = single_samples(rows.inputs, found)
    return count, parts | {row.name: list(parts[row.name]) for row in states}


def feed_back(rows: Manifest, feeds: Feeds, samples: Mapping[str, Any], value: Value) -> None:
    """Append a sample's outputs for each state to that state's samples, of which the sample's own are dropped."""
    places, taken = {row.name: at for at, row in enumerate(rows.outputs)}, {row.name: row for row in rows.inputs}
    for name, output in feeds.items():
        at = places[output]
        given = np.asarray(value[at] if isinstance(value, tuple) else value)
        samples[name].append(next_state(given, rows.outputs[at], taken[name]))
        samples[name][-1 - rows.batch] = None


def next_state(value: NDArray[Any], output: TensorInfo, taken: TensorInfo) -> NDArray[Any]:
    """What goes in of an output that is fed back."""
    axis = _longer_axis(output.shape, taken.shape)
    if axis is None:
        return value
    begin = output.shape[axis] - taken.shape[axis]
    return value[(slice(None),) * axis + (slice(begin, None),)]


def _longer_axis(given: Sequence[int], wanted: Sequence[int]) -> int | None:
    """The axis along which alone a shape differs from another one and is longer, None where there is none."""
    if len(given) != len(wanted):
        return None
    different = [axis for axis in range(len(given)) if given[axis] != wanted[axis]]
    return different[0] if len(different) == 1 and given[different[0]] > wanted[different[0]] else None


def _named(name: str, rows: Sequence[TensorInfo], what: str) -> TensorInfo:
    known = {row.name: row for row in rows}
    if name in known:
        return known[name]
    raise InputError(one_of(f"{what} that is fed back", known, name))


def _check_types(output: TensorInfo, taken: TensorInfo) -> None:
    for row, what in ((output, "output"), (taken, "input")):
        if row.type is not None:
            raise InputError(f"{what} {row.name} must be a tensor of known shape to be fed back")
    if output.shape != taken.shape and _longer_axis(output.shape, taken.shape) in (None, taken.batch_axis):
        shape = f"{taken.shape}, or more along one axis, not {output.shape}"
        raise InputError(f"output {output.name} must have the shape of input {taken.name} to be fed back, {shape}")
    for what, given, wanted in (
        ("dtype", output.dtype, taken.dtype),
        ("batch axis", output.batch_axis, taken.batch_axis),
    ):
        if given != wanted:
            raise InputError(
                f"output {output.name} must have the {what} of input {taken.name} to be fed back, {wanted}, not {given}"
            )


def first_state(row: TensorInfo, inputs: Mapping[str, Any], is_quantized: bool) -> Samples:
    """The first sample of a state, or zeros."""
    if row.name not in inputs:
        return np.zeros((1, *row.shape), row.dtype)
    return read_samples([row], inputs, is_quantized)[1][row.name][:1]
