"""Long and deep programs need no deep stack; the programs of the benchmark are what they say."""

import sys
from pathlib import Path

import pytest

import relay_hw as relay
from relay_hw.analysis import check_well_formed, free_vars, structural_equal, structural_hash
from relay_hw.errors import RelayHwError
from relay_hw.text import load_json, parse, parse_expr, save_json

ROOT = Path(__file__).parents[3]
DEEP = 20_000
# Deeper than the stack of Python.
WALKED = 3_000


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import bench_text

        yield bench_text
    finally:
        sys.path.remove(str(ROOT / "scripts"))


def main(body: str, params: str = "%x: int32") -> str:
    return f'#[version = "0.0.5"]\ndef @main({params}) {{ {body} }}\n'


def test_resnet50_of_the_bench_has_its_layers_and_weights(bench):
    mod = parse(bench.resnet50())
    calls = [n for n in _nodes(mod["main"]) if isinstance(n, relay.Call)]
    assert sum(call.op.name == "nn.conv2d" for call in calls) == 53
    sizes = [param.type.static_shape for param in mod["main"].params[1:]]
    assert sum(_product(size) for size in sizes) == 25_557_032 + 2 * 26_560


def _nodes(expr):
    found = []
    relay.analysis.post_order_visit(expr, found.append)
    return found


def _product(sizes):
    total = 1
    for size in sizes:
        total *= size
    return total


def test_let_chain_of_thirty_thousand(bench):
    mod = parse(bench.lets(30_000))
    assert len(_nodes(mod["main"])) == 120_003


def test_every_walk_over_a_long_let_chain_is_iterative(bench):
    mod = parse(bench.lets(WALKED))
    text = mod.astext()
    again = parse(text)
    assert structural_equal(mod, again)
    assert structural_hash(mod) == structural_hash(again)
    assert structural_equal(load_json(save_json(mod)), mod)
    assert free_vars(mod["main"]) == ()
    check_well_formed(mod)
    assert int(relay.create_executor("debug", mod=mod).evaluate()(1)) == WALKED + 1


def test_twenty_thousand_parentheses_are_no_different_from_none(bench):
    assert structural_equal(parse(bench.parentheses()), parse(main("%x")))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("add(", ", 1)"),
        ("(fn (%y: int32) { %y })(", ")"),
        ("ref_read(ref(", "))"),
        ("if (True) { ", " } else { 1 }"),
        ("(let %a = 1; ", ")"),
        ("(", ", 1).0"),
    ],
)
def test_deep_expressions_are_read_typed_and_printed(before, after):
    mod = parse(main(before * WALKED + "%x" + after * WALKED))
    assert structural_equal(parse(mod.astext()), mod)


@pytest.mark.parametrize(
    "text",
    [
        main("(" * DEEP + "%x" + ",)" * DEEP),
        main("fn () { " * DEEP + "%x" + " }" * DEEP),
        main("1", "%x: " + "(" * DEEP + "int32" + ",)" * DEEP),
        main("reshape(%x, newshape=" + "[" * DEEP + "]" * DEEP + ")"),
        main("match? (%x) { " + "(" * DEEP + "_" + ")" * DEEP + " => { 1 } }"),
        main("%x") + "#[metadata]" + "[" * DEEP + "]" * DEEP,
        main("(" * DEEP),
        main("%x" + "()" * DEEP),
        main("%x" + ".0" * DEEP),
    ],
)
def test_what_is_nested_too_deeply_is_refused_in_one_line(text):
    with pytest.raises(RelayHwError) as error:
        parse(text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


def test_deep_bare_expression():
    assert isinstance(parse_expr("(" * DEEP + "1" + ")" * DEEP), relay.Constant)
