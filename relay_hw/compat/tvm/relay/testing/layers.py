"""Layers that make variables for their weights, named after the layer."""

from __future__ import annotations

from typing import Any

import relay_hw as relay
from relay_hw.ir.expr import Call, Expr, TupleGetItem


def batch_norm_infer(
    data: Expr,
    gamma: Expr | None = None,
    beta: Expr | None = None,
    moving_mean: Expr | None = None,
    moving_var: Expr | None = None,
    **options: Any,
) -> TupleGetItem:
    """The normalised `data`; statistics that are not given become variables."""
    name = options.pop("name")
    parts = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    made: list[Any] = [part if part is not None else relay.var(f"{name}_{suffix}") for suffix, part in parts.items()]
    return relay.nn.batch_norm(data, *made, **options)[0]


def conv2d(data: Expr, weight: Expr | None = None, **options: Any) -> Call:
    """A convolution; the weight becomes a variable unless given."""
    name = options.pop("name")
    return relay.nn.conv2d(data, weight if weight is not None else relay.var(f"{name}_weight"), **options)


def dense_add_bias(
    data: Expr, weight: Expr | None = None, bias: Expr | None = None, units: int | None = None, **options: Any
) -> Call:
    """A dense layer with a bias."""
    name = options.pop("name")
    weight = weight if weight is not None else relay.var(f"{name}_weight")
    bias = bias if bias is not None else relay.var(f"{name}_bias")
    return relay.nn.bias_add(relay.nn.dense(data, weight, units, **options), bias, axis=-1)
