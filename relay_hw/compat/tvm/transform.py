"""Pass infrastructure under TVM's names."""

from relay_hw.transform import FunctionPass, Pass, PassContext, PassInfo, Sequential, function_pass, module_pass
from relay_hw.transform.instrument import PrintAfterAll, PrintBeforeAll

ModulePass = Pass


def PrintIR(*args: object) -> Pass:
    """A pass that prints the module that it gets."""
    return module_pass(lambda mod, context: (print(mod.astext()), mod)[1], opt_level=0, name="PrintIR")


__all__ = [
    "FunctionPass",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintAfterAll",
    "PrintBeforeAll",
    "PrintIR",
    "Sequential",
    "function_pass",
    "module_pass",
]
