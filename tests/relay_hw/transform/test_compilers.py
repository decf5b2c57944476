"""Handing parts of a program to a compiler: composites, annotation, merging of regions, partitioning."""

from __future__ import annotations

import random

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.analysis import check_well_formed
from relay_hw.dataflow_pattern import is_constant, is_op, wildcard
from relay_hw.errors import UnsupportedError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.op.annotation import compiler_begin, compiler_end
from relay_hw.transform import (
    AnnotateTarget,
    FuseOps,
    InferType,
    MergeCompilerRegions,
    MergeComposite,
    PartitionGraph,
    Pipeline,
)
from tests.relay_hw.programs import random_module
from tests.relay_hw.random_cnn import random_cnn, random_input
from tests.relay_hw.transform.checks import assert_close, module, operators, var
from tests.relay_hw.transform.reference import assert_keeps_semantics

X, Y = var("x", 4), var("y", 4)
DSP = {"dsp": {"add": True, "exp": True, "multiply": True}}


def steps(supported: dict = DSP, merge: bool = True, bind: bool = True) -> Pipeline:
    middle = [MergeCompilerRegions()] if merge else []
    return Pipeline(
        [AnnotateTarget(list(supported), supported=supported), *middle, PartitionGraph(bind_constants=bind)]
    )


def regions(mod: IRModule) -> dict[str, list[str]]:
    return {name: sorted(operators(mod, name)) for name, f in mod.functions.items() if "Compiler" in f.attrs}


def partition(body: Expr, *params: Var, **options: object) -> dict[str, list[str]]:
    return regions(steps(**options)(module(body, *params)))


def test_a_chain_is_one_region() -> None:
    body = op.negative(op.exp(op.add(X, op.multiply(X, Y))))
    assert partition(body, X, Y) == {"tvmgen_default_dsp_main_0": ["add", "exp", "multiply"]}
    assert len(partition(body, X, Y, merge=False)) == 3


def test_attributes_parameters_and_results() -> None:
    shared = op.exp(X)
    body = Tuple([op.negative(shared), op.add(shared, op.const(np.ones(4, "float32")))])
    new = steps()(module(body, X))
    (name,) = regions(new)
    function = new[name]
    assert dict(function.attrs) == {"Compiler": "dsp", "global_symbol": name, "Primitive": 1, "Inline": 1}
    assert len(function.params) == 1 and isinstance(function.body, Tuple)
    assert any(isinstance(node, Constant) for node in post_order(function))
    loose = steps(bind=False)(module(body, X))
    assert len(loose[name].params) == 2 and not any(isinstance(n, Constant) for n in post_order(loose[name]))
    calls = [n for n in post_order(new["main"]) if isinstance(n, Call) and isinstance(n.op, relay.GlobalVar)]
    assert len(calls) == 1


def test_a_region_never_depends_on_itself() -> None:
    """exp -> negative -> add with a short cut from exp to add: both cannot be one region."""
    a = op.exp(X)
    assert len(partition(op.add(a, op.negative(a)), X)) == 2


def test_a_detour_through_merged_regions_is_seen() -> None:
    p = op.exp(X)
    q = op.exp(Y)
    d = op.negative(op.add(p, q))
    late = op.add(op.multiply(p, q), d)
    found = partition(late, X, Y)
    check = steps()(module(late, X, Y))
    values = [np.float32([1, 2, 3, 4]), np.float32([0, 1, 0, -1])]
    assert_close(evaluate(module(late, X, Y), values), evaluate(check, values), "detour")
    assert sum(map(len, found.values())) == 5 and len(found) == 2


def test_the_first_compiler_that_supports_an_operator_gets_it() -> None:
    both = {"npu": {"exp": True, "add": lambda call: call.args[0] is not call.args[1]}, "dsp": {"add": True}}
    found = partition(op.add(op.exp(X), op.add(X, X)), X, supported=both)
    assert found == {"tvmgen_default_npu_main_1": ["add", "exp"], "tvmgen_default_dsp_main_0": ["add"]}


def test_composites_go_to_the_compiler_of_their_name() -> None:
    table = [("dsp.scale", is_op("add")(is_op("multiply")(wildcard(), is_constant()), is_constant()))]
    table += [("dsp.big", is_op("multiply")(wildcard(), wildcard()), lambda root: False)]
    body = op.add(op.multiply(X, op.const(np.float32(2))), op.const(np.float32(1)))
    mod = MergeComposite(table)(module(op.negative(body), X))
    (composite,) = [n for n in post_order(mod["main"]) if isinstance(n, Function) and "Composite" in n.attrs]
    assert composite.attrs == {"Composite": "dsp.scale", "PartitionedFromPattern": "multiply_add_"}
    new = Pipeline([AnnotateTarget("dsp"), MergeCompilerRegions(), PartitionGraph("net")])(mod)
    assert list(regions(new)) == ["tvmgen_net_dsp_main_0"]
    assert evaluate(new, [np.float32([1, 2, 3, 4])]).tolist() == [-3, -5, -7, -9]


def test_larger_patterns_come_first() -> None:
    relu, conv = is_op("nn.relu"), is_op("nn.conv2d")(wildcard(), wildcard())
    image = var("image", 1, 2, 4, 4)
    layer = op.nn.conv2d(image, op.const(np.ones((2, 2, 1, 1), "float32")))
    body = op.exp(op.nn.relu(layer))
    mod = MergeComposite([("d.conv_relu", relu(conv)), ("d.conv", conv)])(module(body, image))
    assert "d.conv_relu" in mod.astext() and '"d.conv"' not in mod.astext()


def test_tuples_between_supported_operators_go_along() -> None:
    supported = {"dsp": {"split": True, "exp": True, "concatenate": True}}
    parts = op.split(X, 2)
    body = op.concatenate([op.exp(TupleGetItem(parts, 0)), TupleGetItem(parts, 1)], axis=0)
    assert len(partition(body, X, supported=supported)) == 1
    outside = Pipeline([AnnotateTarget("dsp", False, supported), MergeCompilerRegions(), PartitionGraph()])
    assert len(regions(outside(module(body, X)))) > 1


def test_blocks_are_borders() -> None:
    c, z = relay.var("c", "bool"), relay.var("z")
    a = op.exp(X)
    body = If(c, op.add(a, a), op.exp(a))
    found = partition(body, c, X)
    assert len(found) == 3
    late = Let(z, op.negative(X), op.add(op.exp(X), z))
    assert_keeps(late, X)
    function = Function([var("w", 4)], op.exp(op.exp(X)))
    assert len(partition(Tuple([op.exp(Y), function]), X, Y)) == 2


def assert_keeps(body: Expr, *params: Var) -> None:
    mod, values = module(body, *params), [np.float32([1, 2, 3, 4])] * len(params)
    assert_close(evaluate(mod, values), evaluate(steps()(mod), values), "blocks")


def test_what_users_annotate_by_hand() -> None:
    a = compiler_end(op.exp(compiler_begin(X, "dsp")), "dsp")
    assert regions(PartitionGraph()(module(op.negative(a), X))) == {"tvmgen_default_dsp_main_0": ["exp"]}
    both = op.exp(compiler_begin(X, "dsp"))
    first = compiler_end(both, "dsp")
    second = compiler_end(op.add(both, compiler_begin(op.negative(first), "dsp")), "dsp")
    with pytest.raises(UnsupportedError, match="a region of a compiler must not depend on its own results"):
        PartitionGraph()(module(second, X))


def test_regions_outlive_fusion_and_may_read_variables_directly() -> None:
    body = op.negative(op.exp(op.add(X, op.multiply(X, Y))))
    mod, values = module(body, X, Y), [np.float32([1, 2, 3, 4]), np.float32([0, 1, 0, -1])]
    annotated = Pipeline([AnnotateTarget("dsp", supported=DSP), MergeCompilerRegions(), FuseOps(3)])(mod)
    new = PartitionGraph()(annotated)
    assert len(regions(new)) == 1
    assert_close(evaluate(mod, values), evaluate(new, values), "fused")
    loose = PartitionGraph()(module(compiler_end(op.add(X, op.exp(Y)), "dsp"), X, Y))
    assert regions(loose) == {"tvmgen_default_dsp_main_0": ["add", "exp"]}
    assert evaluate(loose, values).tolist() == evaluate(module(op.add(X, op.exp(Y)), X, Y), values).tolist()


@pytest.mark.parametrize("seed", range(8))
def test_networks(seed: int) -> None:
    mod = InferType()(random_cnn(seed))
    inputs = random_input(mod, seed)
    names = sorted(set(operators(mod)))
    choose = random.Random(seed)
    supported = {"a": dict.fromkeys(choose.sample(names, len(names) // 2 + 1), True)}
    supported["b"] = dict.fromkeys(choose.sample(names, len(names) // 2), True)
    new = steps(supported)(mod)
    assert_close(evaluate(mod, inputs), evaluate(new, inputs), f"random_cnn({seed})")


def test_programs(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("add", "subtract", "multiply", "maximum", "sum", "stack", "reshape", "where", "split", "nn.relu", "cast")
    choose = random.Random(1)
    made = 0
    for seed in range(150):
        supported = {target: dict.fromkeys(choose.sample(names, 6), True) for target in "ab"}
        new = assert_keeps_semantics([steps(supported)], random_module(seed), f"random_module({seed})")
        check_well_formed(new)
        made += len(regions(new))
    assert made > 100
