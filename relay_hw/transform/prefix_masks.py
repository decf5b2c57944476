"""PrefixMasks: takes masks of padding as lengths, where they are ones and then zeros.

In: a float graph, names of inputs that are such masks, one number a column. Out: the graph with softmaxes that see as
many columns as the mask has ones. What the graph makes of a mask is tried for each length, so that it does not matter
how it is written; a mask with a one behind a zero would mean something else and must be refused before it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import InputError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Constant, Expr, Function, Trait, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import children, copy_with, post_order
from relay_hw.transform.graph import calls_that_read, constant, dtype_of, has_trait, is_op, make, scalar_value, shape_of
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.redirect import redirect

# What a mask adds to scores that do not count, at most; what they become.
MASKED = -1e3


def prefix_masks(mod: IRModule, names: Sequence[str]) -> IRModule:
    """`mod`, a typed module whose `main` is one graph, with lengths instead of the masks of these names.

    Raises InputError for a name that no input has, and for a mask that hides columns of no softmax.
    """
    main = mod["main"]
    by_name = {param.name_hint: param for param in main.params}
    found: dict[Expr, Expr] = {}
    for name in names:
        if name not in by_name:
            raise InputError(f"mask {name} must be one of the inputs {', '.join(by_name)}")
        own = _hidden(main.body, by_name[name])
        if not own:
            raise InputError(f"mask {name} must hide columns of a softmax behind its last one, and nothing else")
        found |= own
    if not found:
        return mod
    body = redirect(main.body, found.get)
    return InferType()(mod.with_functions({"main": copy_with(main, body=body, checked_type=None)}))


def could_be_lengths(mod: IRModule, known: Sequence[str] = ()) -> str:
    """A sentence on inputs of a typed graph, but those `known`, that hide columns of softmaxes as masks of padding do;
    empty without."""
    main = mod["main"]
    params = [param for param in main.params if shape_of(param) and param.name_hint not in known]
    found = [param.name_hint for param in params if _hidden(main.body, param)]
    flags = " ".join(f"--prefix-mask {name}" for name in found)
    how = f"where that is always ones and then zeros, {flags} leaves it to the accelerator"
    return f"softmaxes are masked on the host by {', '.join(found)}: {how}" if found else ""


def check_prefixes(name: str, mask: NDArray[np.generic]) -> None:
    """Raise InputError unless each row of a mask is ones and then zeros."""
    rows = np.asarray(mask).reshape(-1, np.shape(mask)[-1])
    lengths = (rows != 0).sum(axis=1)
    if not lengths.all() or (rows != (np.arange(rows.shape[1]) < lengths[:, None])).any():
        what = "one or more ones and then zeros, as the model was compiled for such masks"
        raise InputError(f"input {name} must be {what}")


def _hidden(body: Expr, mask: Var) -> dict[Expr, Expr]:
    """Each masked tensor of scores, and the same scores of the columns that count."""
    derived = _derived(body, mask)
    readers = calls_that_read(post_order(body))
    tried: dict[Expr, bool] = {}
    found: dict[Expr, Expr] = {}
    for node in post_order(body):
        if not isinstance(node, Call) or node in derived or not _only_softmax(readers.get(node, ())):
            continue
        for scores, what, adds in _masking(node):
            if what in derived and shape_of(scores) == shape_of(node):
                if what not in tried:
                    tried[what] = _counts_columns(what, mask, adds)
                if tried[what]:
                    found[node] = _bounded(scores, mask)
    return found


def _derived(body: Expr, mask: Var) -> set[Expr]:
    """What is computed of the mask and of constants alone, without layers: no network is run to see what it hides."""
    found: set[Expr] = {mask}
    for node in post_order(body):
        parts = children(node)
        own = isinstance(node, (Call, Tuple, TupleGetItem)) and any(part in found for part in parts)
        data = node.args if isinstance(node, Call) else parts
        own = own and not has_trait(node, Trait.ANCHOR)
        if own and all(part in found or isinstance(part, Constant) for part in data):
            found.add(node)
    return found


def _only_softmax(readers: Sequence[Expr]) -> bool:
    return bool(readers) and all(map(_is_softmax_of_rows, readers))


def _is_softmax_of_rows(reader: Expr) -> bool:
    if not isinstance(reader, Call) or not is_op(reader, "nn.softmax", "nn.fast_softmax"):
        return False
    return reader.attrs.axis in (-1, len(shape_of(reader) or ()) - 1)


def _masking(call: Call) -> Iterator[tuple[Expr, Expr, bool]]:
    """Scores, what hides some of them, and whether that is added."""
    if is_op(call, "add"):
        yield call.args[0], call.args[1], True
        yield call.args[1], call.args[0], True
    elif is_op(call, "where") and (number := scalar_value(call.args[2])) is not None and number <= MASKED:
        yield call.args[1], call.args[0], False


def _counts_columns(what: Expr, mask: Var, adds: bool) -> bool:
    """Whether for each length what is made of its mask hides the columns behind, in all rows, and no other."""
    given, shape = shape_of(mask), shape_of(what)
    size = prod(given or (0,))
    if not given or not shape or {given[-1], shape[-1], prod(shape)} != {size}:
        return False
    function = Function([mask], what)
    mod = InferType()(IRModule.from_expr(function))
    for length in range(1, size + 1):
        value = np.asarray(evaluate(mod, [(np.arange(size) < length).astype(dtype_of(mask)).reshape(given)])).reshape(
            -1
        )
        seen, behind = value[:length], value[length:]
        if not (not seen.any() and (behind <= MASKED).all() if adds else seen.all() and not behind.any()):
            return False
    return True


def _bounded(scores: Expr, mask: Var) -> Expr:
    """`where(column < length, scores, -1000)`."""
    shape = shape_of(scores)
    assert shape
    ones = make("cast", (mask,), dtype="int32")
    length = make("reshape", (make("sum", (ones,), axis=None),), newshape=(1,) * len(shape))
    columns = constant(np.arange(shape[-1], dtype=np.int32).reshape((1,) * (len(shape) - 1) + (-1,)))
    counts = make("less", (columns, length))
    return make("where", (counts, scores, constant(np.float32(MASKED))), span=scores.span)
