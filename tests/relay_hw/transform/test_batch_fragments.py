"""BatchFragments: a form gives for each row the bits of its fragment; where it could not, there is none."""

from __future__ import annotations

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.backend.flat import Machine, flatten
from relay_hw.errors import InputError
from relay_hw.ir.expr import Function
from relay_hw.runtime import CompileOptions, compile_model
from relay_hw.runtime.compile import bind_params
from relay_hw.transform import BatchFragments, InferType, OutlineFragments, ToANormalForm, simplify_pipeline
from relay_hw.transform.batch_fragments import batched, forms_of, sizes
from relay_hw.transform.fragments import FRAGMENT
from tests.relay_hw import recurrent
from tests.relay_hw.transform.reference import plain

HEADER = '#[version = "0.0.5"]\n'
ROW = "Tensor[(1, 8), float32]"


def fragment(body: str, params: str = f"%x: {ROW}, %y: {ROW}", result: str = ROW) -> Function:
    """A typed function of this text."""
    return InferType()(relay.fromtext(f"{HEADER}def @main({params}) -> {result} {{ {body} }}"))["main"]


def values(function: Function, args: list[np.ndarray]) -> list[np.ndarray]:
    found = Machine({}).call(flatten(function, "f"), args)
    return list(found) if isinstance(found, tuple) else [found]


def check_rows(function: Function, rows: int) -> Function:
    """The form, after every row of random inputs was compared."""
    form = batched(function, "f", rows)
    assert form is not None
    rng = np.random.default_rng(rows)
    args = [(3 * rng.normal(size=(rows, *p.tensor_type.static_shape[1:]))).astype(p.tensor_type.dtype)
            for p in function.params]  # fmt: skip
    whole = values(form, args)
    for row in range(rows):
        one = values(function, [arg[row : row + 1] for arg in args])
        assert [part[row : row + 1].tobytes() for part in whole] == [part.tobytes() for part in one]
    return form


@pytest.mark.parametrize("name", ["treelstm", "newton"])
def test_quantized_fragments_of_rows_have_forms(name: str) -> None:
    """Layers, conversions, gates: what the accelerator and the host compute for a call."""
    mod, weights = getattr(recurrent, name)()
    rows = np.random.default_rng(2).normal(size=(4, 1, 32)).astype("float32")
    data = {"tree": recurrent.trees(mod, 4)} if name == "treelstm" else {"x": 3 * rows}
    options = CompileOptions(accelerate=False, host_target="numpy")
    quantized = compile_model(mod, options, params=weights, calibration=data).stages["quantized"]
    quantized = OutlineFragments()(quantized)
    new = BatchFragments(5)(quantized)
    forms = forms_of(new)
    assert [row.rows for row in forms] == ([5, 2] * (2 if name == "treelstm" else 1))
    parts = {"piece_0_0", "piece_0_1"} if name == "newton" else set[str]()
    assert set(new.functions) == {*quantized.functions, *parts, *(row.form for row in forms)}
    for row in forms:
        assert row.form == f"{row.function}_x{row.rows}"
        assert FRAGMENT in new[row.form].attrs
        check_rows(new[row.function], row.rows)


@pytest.mark.parametrize(
    "body",
    [
        "tanh(%x) * sigmoid(%y) + exp(%x)",
        "reshape(nn.relu(%x - %y), newshape=[1, 8])",
        "let %s = split(%x, indices_or_sections=2, axis=1); concatenate((%s.1, %s.0), axis=1) + %y",
        "add(%x, 2f) / maximum(abs(%y), 1f)",
    ],
)
def test_operators_that_keep_rows_apart(body: str) -> None:
    function = simplify_pipeline()(relay.IRModule({"main": fragment(body)}))["main"]
    form = check_rows(function, 3)
    assert [param.tensor_type.static_shape for param in form.params] == [(3, 8)] * 2


def test_several_results_and_any_number_of_rows() -> None:
    function = fragment("(%x + %y, %x * %y)", result=f"({ROW}, {ROW})")
    for rows in (2, 7, 33):
        check_rows(function, rows)


@pytest.mark.parametrize(
    ("body", "params", "result"),
    [
        # Floats are added in an order that the number of rows decides.
        ("nn.dense(%x, %w, units=8)", f"%x: {ROW}, %w: Tensor[(8, 8), float32]", ROW),
        ("nn.softmax(%x)", f"%x: {ROW}", ROW),
        ("sum(%x, axis=[1], keepdims=True)", f"%x: {ROW}", "Tensor[(1, 1), float32]"),
        # An input or a result that is no row.
        ("%x + %y", f"%x: {ROW}, %y: Tensor[(8), float32]", ROW),
        ("nn.relu(%x)", "%x: Tensor[(2, 8), float32]", "Tensor[(2, 8), float32]"),
        ("nn.relu(%x)", "%x: Tensor[(1, 3, 4, 4), float32]", "Tensor[(1, 3, 4, 4), float32]"),
        ("nn.relu(%x)", "%x: Tensor[(1, ?), float32]", "Tensor[(1, ?), float32]"),
        ("expand_dims(%x, axis=0)", f"%x: {ROW}", "Tensor[(1, 1, 8), float32]"),
        # Rows would be mixed.
        ("transpose(%x, axes=[1, 0])", "%x: Tensor[(1, 1), float32]", "Tensor[(1, 1), float32]"),
        ("reshape(concatenate((%x, %x), axis=0), newshape=[1, 16])", f"%x: {ROW}", "Tensor[(1, 16), float32]"),
        ("zeros_like(%x)", f"%x: {ROW}, %k: int32", ROW),
    ],
)
def test_what_has_no_form(body: str, params: str, result: str) -> None:
    assert batched(fragment(body, params, result), "f", 4) is None


def test_rows_against_constants_of_many_rows_have_no_form() -> None:
    x = fragment("%x", f"%x: {ROW}")
    joined = relay.op.concatenate((x.params[0], relay.const(np.ones((1, 8), "float32"))), axis=1)
    whole = Function(list(x.params), joined)
    typed = InferType()(relay.IRModule({"main": whole}))["main"]
    assert batched(typed, "f", 4) is None


def layer_in_a_branch(before: str = "%x", behind: str = "%d") -> relay.IRModule:
    """A layer of integers with something before it and behind it, in one arm of two."""
    text = (
        "def @main(%x: Tensor[(1, 8), int8], %w: Tensor[(8, 8), int8], %k: int32) -> Tensor[(1, 8), int32] {"
        f' if (%k > 0) {{ let %d = nn.dense({before}, %w, units=8, out_dtype="int32"); {behind} }}'
        ' else { zeros(shape=[1, 8], dtype="int32") } }'
    )
    weight = np.random.default_rng(0).integers(-8, 8, (8, 8)).astype("int8")
    return bind_params(InferType()(relay.fromtext(HEADER + text)), {"w": weight})


_TWO = 'nn.dense(reverse(cast(%d, dtype="int8"), axis=1), %w, units=8, out_dtype="int32")'


@pytest.mark.parametrize(
    ("before", "behind", "parts", "forms"),
    [
        ("%x", "%d", 0, (0,)),
        ('cast(nn.softmax(cast(%x, dtype="float32")) * 9f, dtype="int8")', "%d", 2, (1,)),
        ("%x", "cumsum(%d * %d, axis=1)", 2, (0,)),
        ("reverse(%x, axis=1)", "cumsum(%d, axis=1)", 3, (1,)),
        ("abs(reverse(abs(%x), axis=1))", "cumsum(abs(%d), axis=1) * %d", 3, (1,)),
        ("%x", _TWO, 3, (0, 2)),
    ],
)
def test_a_fragment_is_divided_around_its_rows(before: str, behind: str, parts: int, forms: tuple[int, ...]) -> None:
    """The divided program has the value of the whole one; the parts with layers have forms."""
    mod = InferType()(layer_in_a_branch(before, behind))
    outlined = OutlineFragments()(mod)
    new = BatchFragments(4)(outlined)
    rows = forms_of(new)
    names = {name for name in new.functions if name not in outlined.functions} - {row.form for row in rows}
    assert names == {f"piece_0_{part}" for part in range(parts)}
    wanted = [f"piece_0_{part}" if parts else "piece_0" for part in forms]
    assert [(row.function, row.rows) for row in rows] == [(name, count) for name in wanted for count in (4, 2)]
    for row in rows:
        check_rows(new[row.function], row.rows)
    x = np.random.default_rng(1).integers(-50, 50, (1, 8)).astype("int8")
    for k in (0, 1):
        assert plain(evaluated(new, x, k)) == plain(evaluated(mod, x, k))


def evaluated(mod: relay.IRModule, x: np.ndarray, k: int) -> object:
    return relay.create_executor("debug", mod).evaluate()(x, np.int32(k))


def test_a_fragment_without_a_layer_has_no_form() -> None:
    text = f"def @main(%x: {ROW}, %k: int32) -> {ROW} {{ if (%k > 0) {{ tanh(%x) }} else {{ %x }} }}"
    outlined = OutlineFragments()(InferType()(relay.fromtext(HEADER + text)))
    assert BatchFragments(2)(outlined) is outlined


def test_a_fragment_with_names_in_it_has_no_form() -> None:
    """`OutlineFragments` makes graphs; a pass after it may have named values."""
    named = ToANormalForm()(OutlineFragments()(layer_in_a_branch()))
    assert BatchFragments(2)(named) is named


def test_a_name_that_is_taken_and_a_second_time() -> None:
    outlined = OutlineFragments()(layer_in_a_branch())
    other = fragment("%x", f"%x: {ROW}")
    new = BatchFragments(2)(InferType()(outlined.with_functions({"piece_0_x2": other})))
    assert [row.form for row in forms_of(new)] == ["piece_0_x2_"]
    assert forms_of(outlined) == ()
    assert BatchFragments(3)(new) is new


def test_each_form_is_for_half_as_many_rows_as_the_one_before() -> None:
    assert [sizes(most) for most in (2, 3, 5, 40)] == [[2], [3], [5, 2], [40, 20, 10]]


def test_rows_must_be_two_at_least() -> None:
    with pytest.raises(InputError, match="rows must be at least 2, not 1"):
        BatchFragments(1)
