"""Patterns of `match` against values that are known in part. In: a pattern and a value. Out: yes, no or not known."""

from __future__ import annotations

from relay_hw.ir.expr import Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard, Var
from relay_hw.ir.types import bind_type_vars
from relay_hw.ir.visit import copy_with
from relay_hw.transform.partial_values import Env, Fields, PartialValue

UNKNOWN, NO, YES = None, False, True


def matches(pattern: Pattern, value: PartialValue, found: dict[Var, PartialValue]) -> bool | None:
    """Whether `value` has the form of `pattern`, None if that is not known."""
    match pattern:
        case PatternVar(var=var):
            found[var] = value
            return YES
        case PatternWildcard():
            return YES
        case PatternConstructor(constructor=constructor, patterns=inner):
            if not isinstance(value.static, Fields):
                return UNKNOWN
            given = value.static.constructor
            if given is None or given.name_hint != constructor.name_hint:
                return NO
        case PatternTuple(patterns=inner):
            if not isinstance(value.static, Fields):
                return UNKNOWN
        case _:
            return UNKNOWN
    assert isinstance(value.static, Fields)
    answers = [matches(part, item, found) for part, item in zip(inner, value.static.parts, strict=True)]
    if NO in answers:
        return NO
    return UNKNOWN if UNKNOWN in answers else YES


def renamed(pattern: Pattern, env: Env) -> Pattern:
    """`pattern` with new variables, which `env` gets."""
    match pattern:
        case PatternVar(var=var):
            given = var.type_annotation
            new = copy_with(var, type_annotation=None if given is None else bind_type_vars(given, env.types))
            env.bind(var, PartialValue(None, new))
            return PatternVar(new)
        case PatternConstructor(constructor=constructor, patterns=inner):
            return PatternConstructor(constructor, [renamed(part, env) for part in inner])
        case PatternTuple(patterns=inner):
            return PatternTuple([renamed(part, env) for part in inner])
        case _:
            return pattern
