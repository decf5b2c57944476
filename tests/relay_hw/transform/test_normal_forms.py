"""The normal forms: what is named, and where; long chains are no matter. EtaExpand and Inline."""

from __future__ import annotations

import relay_hw as relay
from relay_hw import op
from relay_hw.analysis import structural_equal
from relay_hw.analysis.scope import find_scopes
from relay_hw.ir.expr import Call, Expr, Function, If, Let, Tuple, Var
from relay_hw.ir.visit import post_order
from relay_hw.transform import (
    EtaExpand,
    InferType,
    Inline,
    Pipeline,
    ToANormalForm,
    ToBasicBlockNormalForm,
    ToGraphNormalForm,
)
from relay_hw.transform.effects import Effect, module_effects, node_effects
from relay_hw.transform.normal_form import ATOMS
from relay_hw.transform.to_basic_block_normal_form import is_basic_block_normal_form
from tests.relay_hw.programs import CONS, NIL, TYPES, random_module
from tests.relay_hw.transform.checks import module, operators, var
from tests.relay_hw.transform.reference import assert_keeps_semantics, reference_result

X = var("x", 2)


def names(root: Expr) -> int:
    return sum(isinstance(node, Let) for node in post_order(root))


def test_a_normal_form_names_everything() -> None:
    new = ToANormalForm()(module(op.add(op.exp(X), op.exp(X)), X))["main"]
    assert names(new) == 3
    for seed in range(80):
        root = ToANormalForm()(random_module(seed))["main"]
        for node in post_order(root):
            if isinstance(node, (Call, Tuple)):
                parts = (node.op, *node.args) if isinstance(node, Call) else node.fields
                assert all(isinstance(part, ATOMS) for part in parts), seed


def test_a_node_is_named_once_and_before_the_branch_that_shares_it() -> None:
    c, shared = relay.var("c", "bool"), op.exp(X)
    main = ToANormalForm()(module(If(c, op.add(shared, shared), shared), c, X))["main"]
    assert isinstance(main.body, Let) and operators(module(main.body.value, X)) == ["exp"]
    assert sum(isinstance(n, Call) and n.op is op.get("exp") for n in post_order(main)) == 1


def test_effects_are_named_in_the_order_of_evaluation() -> None:
    first, second = op.debug(relay.const(1)), op.debug(relay.const(2))
    body = op.add(op.multiply(second, first), first)
    order = [n.value for n in lets(ToANormalForm()(module(body))["main"]) if "debug" in str(operators(module(n.value)))]
    assert [node.args[0].data.item() for node in order] == [2, 1]


def lets(function: Function) -> list[Let]:
    found, node = [], function.body
    while isinstance(node, Let):
        found.append(node)
        node = node.body
    return found


def test_basic_block_normal_form_names_what_blocks_share_only() -> None:
    c, shared = relay.var("c", "bool"), op.exp(X)
    mod = module(If(c, op.add(shared, op.negative(X)), op.negative(shared)), c, X)
    assert not is_basic_block_normal_form(mod["main"])
    new = ToBasicBlockNormalForm()(mod)["main"]
    assert names(new) == 1 and is_basic_block_normal_form(new)
    straight = InferType()(module(op.add(shared, shared), X))
    assert ToBasicBlockNormalForm()(straight) is straight
    for seed in range(80):
        assert is_basic_block_normal_form(ToBasicBlockNormalForm()(random_module(seed))["main"]), seed


def test_graph_normal_form_names_what_functions_share_only() -> None:
    mod = InferType()(module(op.add(op.exp(X), op.negative(X)), X))
    assert structural_equal(InferType()(ToGraphNormalForm()(ToANormalForm()(mod))), mod)
    for seed in range(80):
        # A function may lose its last user, and what it shared then needs no name any more.
        mod = Pipeline([ToGraphNormalForm()] * 3)(random_module(seed))
        effects = node_effects(mod["main"], module_effects(mod))
        captured = find_scopes(mod["main"]).captured
        for node in post_order(mod["main"]):
            if isinstance(node, Let) and effects[node.value] is Effect.PURE:
                assert node.var in captured or any(part is node.var for part in post_order(node.value)), seed


def test_a_chain_of_20_000_bindings() -> None:
    x = relay.var("x", "int32")
    chain = [Var(f"v{index}") for index in range(20_000)]
    body: Expr = chain[-1]
    for index in reversed(range(len(chain))):
        body = Let(chain[index], op.negative(chain[index - 1] if index else x), body)
    mod = InferType()(module(body, x))
    anf = ToANormalForm()(mod)
    assert names(anf["main"]) == len(chain)
    assert names(ToGraphNormalForm()(anf)["main"]) == 0


def test_constructors_and_globals_expand_where_they_are_values() -> None:
    f = relay.var("f", relay.FuncType((relay.scalar_type("int32"),), relay.scalar_type("int32")))
    apply = Function([f], Call(f, [relay.const(3)]))
    one = Function([relay.var("y", "int32")], op.add(relay.const(1), relay.const(1)))
    main = Function([], Call(relay.GlobalVar("apply"), [relay.GlobalVar("one")]))
    mod = relay.IRModule({"one": one, "apply": apply, "main": main}, TYPES)
    new = EtaExpand(expand_global_var=True)(mod)
    (arg,) = new["main"].body.args
    assert isinstance(arg, Function) and isinstance(arg.body, Call)
    assert reference_result(new) == reference_result(mod)
    value = Let(Var("cons"), CONS, relay.const(1))
    expanded = EtaExpand()(relay.IRModule({"main": Function([], value)}, TYPES))["main"].body
    assert isinstance(expanded, Let) and isinstance(expanded.value, Function) and expanded.value.type_params
    kept = EtaExpand(False)(relay.IRModule({"main": Function([], value)}, TYPES))["main"].body
    assert (isinstance(kept, Let) and kept.value is CONS) or kept.value.name_hint == "Cons"


def test_marked_functions_are_inlined() -> None:
    a = relay.TypeVar("A")
    ls = relay.TypeCall(relay.GlobalTypeVar("List"), (a,))
    y = Var("y", a)
    single = Function([y], Call(CONS, [y, Call(NIL, [])]), ls, [a], {"Inline": 1})
    z = relay.var("z", "int32")
    loud = Function([z], op.add(op.debug(z), op.debug(relay.const(5))), None, [], {"Inline": 1})
    n = relay.var("n", "int32")
    loop = Function([n], Call(relay.GlobalVar("loop"), [n]), relay.scalar_type("int32"), [], {"Inline": 1})
    twice = Function([], op.add(_call("loud", relay.const(1)), _call("loud", op.debug(relay.const(2)))))
    body = Tuple([_call("single", _call("twice")), _call("single", relay.const(True))])
    unused = Function([], Call(relay.GlobalVar("loop"), [relay.const(1)]))
    functions = {"single": single, "loud": loud, "loop": loop, "twice": twice, "main": Function([], body)}
    mod = relay.IRModule({**functions, "unused": unused}, TYPES)
    new = assert_keeps_semantics([Inline()], mod, "inline")
    assert list(new.functions) == ["loop", "twice", "main", "unused"]
    assert reference_result(new)[1] == reference_result(mod)[1] and len(reference_result(new)[1]) == 5


def _call(name: str, *args: Expr) -> Call:
    return Call(relay.GlobalVar(name), args)
