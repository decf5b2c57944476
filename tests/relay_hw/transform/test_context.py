"""PassContext, Sequential, decorators and instruments behave as Relay users know them."""

from __future__ import annotations

import pytest

import relay_hw as relay
from relay_hw import transform
from relay_hw.errors import InputError
from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.transform import PassContext, PassInfo, PassInstrument, PassTimingInstrument, Sequential
from tests.relay_hw.transform.checks import operators

X = relay.var("x", shape=(2,))
MOD = IRModule.from_expr(Function([X], relay.add(relay.exp(X), relay.exp(X))))


class Recorder(PassInstrument):
    def __init__(self, skip: str = "") -> None:
        self.seen: list[str] = []
        self.skip = skip

    def enter_pass_ctx(self) -> None:
        self.seen.append("enter")

    def exit_pass_ctx(self) -> None:
        self.seen.append("exit")

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        return info.name != self.skip

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.seen.append(f"before {info.name}")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        assert mod["main"].checked_type is not None
        self.seen.append(f"after {info.name}")


def test_the_level_decides_what_a_sequential_runs() -> None:
    steps = Sequential([transform.EliminateCommonSubexpr()])
    assert operators(steps(MOD)).count("exp") == 2
    with PassContext(opt_level=3):
        assert operators(steps(MOD)).count("exp") == 1
        with PassContext(opt_level=1):
            assert operators(steps(MOD)).count("exp") == 2
        assert PassContext.current().opt_level == 3
    assert PassContext.current().opt_level == 2
    with PassContext(opt_level=0, required_pass=["EliminateCommonSubexpr"]):
        assert operators(steps(MOD)).count("exp") == 1
    with PassContext(opt_level=3, disabled_pass=["eliminate-common-subexpr"]):
        assert operators(steps(MOD)).count("exp") == 2


def test_a_pass_alone_runs_at_every_level() -> None:
    with PassContext(opt_level=0):
        assert operators(transform.EliminateCommonSubexpr()(MOD)).count("exp") == 1


def test_instruments_see_every_pass_and_may_skip_it() -> None:
    seen = Recorder()
    with PassContext(opt_level=3, instruments=[seen]):
        Sequential([transform.InferType(), transform.FoldConstant()], name="both")(MOD)
    inner = ["before InferType", "after InferType", "before FoldConstant", "after FoldConstant"]
    assert seen.seen == ["enter", "before both", *inner, "after both", "exit"]
    skipper = Recorder("EliminateCommonSubexpr")
    with PassContext(instruments=[skipper]):
        assert transform.EliminateCommonSubexpr()(MOD) is MOD
    with PassContext(instruments=[skipper], required_pass=["EliminateCommonSubexpr"]):
        assert transform.EliminateCommonSubexpr()(MOD) is not MOD


def test_instruments_can_be_replaced() -> None:
    old, new = Recorder(), Recorder()
    with PassContext(instruments=[old]) as context:
        context.override_instruments([new])
        transform.InferType()(MOD)
    assert old.seen == ["enter", "exit"]
    assert new.seen == ["enter", "before InferType", "after InferType", "exit"]


def test_timings_add_up() -> None:
    ticks = iter(range(100))
    timing = PassTimingInstrument(lambda: float(next(ticks)))
    with PassContext(instruments=[timing]):
        Sequential([transform.InferType(), transform.FoldConstant()])(MOD)
        text = timing.render()
    (total,) = timing.timings
    assert [(part.name, part.seconds) for part in total.inner] == [("InferType", 1.0), ("FoldConstant", 1.0)]
    assert (total.seconds, total.own_seconds) == (5.0, 3.0)
    lines = text.splitlines()
    assert "sequential" in lines[0] and "5000.000 ms" in lines[0] and "3000.000 ms own" in lines[0]
    assert lines[1].endswith("20.0%    InferType")
    assert PassTimingInstrument().render() == ""


def test_printing_instruments() -> None:
    out: list[str] = []
    with PassContext(instruments=[transform.PrintAfterAll(out.append), transform.PrintBeforeAll(out.append)]):
        transform.InferType()(MOD)
    assert [line.splitlines()[0] for line in out] == ["Before running pass InferType:", "After running pass InferType:"]
    out.clear()
    with PassContext(instruments=[transform.PassPrintingInstrument(["FoldConstant"], [], out.append)]):
        Sequential([transform.InferType(), transform.FoldConstant()])(MOD)
    assert [line.splitlines()[0] for line in out] == ["Before running pass FoldConstant:"]


def test_a_decorated_class_is_an_instrument() -> None:
    @transform.pass_instrument
    class Count:
        def __init__(self) -> None:
            self.count = 0

        def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
            self.count += 1

    count = Count()
    with PassContext(instruments=[count]):
        transform.InferType()(MOD)
    assert count.count == 1 and isinstance(count, PassInstrument)


def test_function_passes_from_functions_and_classes() -> None:
    @transform.function_pass(opt_level=1)
    def drop_body(function: Function, mod: IRModule, context: PassContext) -> Function:
        assert function.checked_type is not None
        return Function(function.params, function.params[0])

    @transform.function_pass(opt_level=1, name="scale", required=["FoldConstant"])
    class Scale:
        """Doc."""

        def __init__(self, factor: float) -> None:
            self.factor = factor

        def transform_function(self, function: Function, mod: IRModule, context: PassContext) -> Function:
            return Function(function.params, relay.multiply(function.body, relay.const(self.factor)))

    assert drop_body.info == PassInfo(1, "drop_body") and operators(drop_body(MOD)) == []
    assert Scale(2.0).info == PassInfo(1, "scale", ("FoldConstant",)) and Scale(2.0).factor == 2.0
    assert operators(Scale(2.0)(MOD))[-1] == "multiply" and Scale.__doc__ == "Doc."
    with PassContext(instruments=[seen := Recorder()]):
        Sequential([Scale(2.0)])(MOD)
    assert "before FoldConstant" in seen.seen


def test_module_passes() -> None:
    @transform.module_pass(opt_level=2)
    def rename(mod: IRModule, context: PassContext) -> IRModule:
        return IRModule({"other": mod["main"]})

    assert list(rename(MOD).functions) == ["other"]


def test_errors() -> None:
    with pytest.raises(
        InputError,
        match=r"configuration of passes must be one of relay\.FuseOps.*, not relay\.Fuse; did you mean relay\.FuseOps",
    ):
        PassContext(config={"relay.Fuse": 1})
    with pytest.raises(InputError, match=r"relay\.FuseOps\.max_depth must be int, not str"):
        PassContext(config={"relay.FuseOps.max_depth": "8"})
    with pytest.raises(InputError, match="opt_level of a pass must be given"):
        transform.function_pass(lambda function, mod, context: function)
    with pytest.raises(InputError, match="pass nothing must return a function, not NoneType"):
        transform.function_pass(lambda function, mod, context: None, opt_level=0, name="nothing")(MOD)
    with pytest.raises(InputError, match="pass nothing must return a module, not NoneType"):
        transform.module_pass(lambda mod, context: None, opt_level=0, name="nothing")(MOD)
    with pytest.raises(InputError, match=r"pass must be one of InferType.*, not Infer; did you mean"):
        transform.get_pass("Infer")
