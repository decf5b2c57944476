"""Pyverilog's syntax trees of the Verilog sources, and a tree as Verilog again."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from pyverilog.ast_code_generator.codegen import ASTCodeGenerator
from pyverilog.vparser import ast
from pyverilog.vparser.parser import VerilogParser

from relay_hw.accel.sim.verilator import RTL_DIR, find_toolchain


@cache
def parser() -> VerilogParser:
    """One parser for all files: making its tables takes a second. They are written to a folder that is then gone."""
    with TemporaryDirectory() as folder:
        return VerilogParser(outputdir=folder, debug=False)


@cache
def module_of(path: Path) -> ast.ModuleDef:
    """The one module of a file, after the preprocessor."""
    tools = find_toolchain()
    command = [str(tools.verilator), "-E", "-P", "--default-language", "1364-2005", f"-I{RTL_DIR / 'gen'}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"VERILATOR_ROOT": str(tools.root)})
    # The parser knows no `resetall and no `default_nettype, which only guard the compilation, nor automatic functions.
    text = re.sub(r"^`.*$", "", done.stdout, flags=re.MULTILINE).replace("function automatic", "function")
    definitions = parser().parse(text).description.definitions
    modules = [item for item in definitions if isinstance(item, ast.ModuleDef)]
    assert len(modules) == 1, f"{path.name} must hold one module, not {len(modules)}"
    return modules[0]


class _Generator(ASTCodeGenerator):
    def visit_Partselect(self, node: ast.Partselect) -> str:
        """`a[b+:w]`, which the parser keeps as `a[b : b + w]` with one node twice, as it was written."""
        var, msb = self.visit(node.var), self.visit(node.msb)
        for kind, mark in ((ast.Plus, "+"), (ast.Minus, "-")):
            if type(node.lsb) is kind and node.lsb.left is node.msb:
                return f"{var}[{msb}{mark}:{self.visit(node.lsb.right)}]"
        return f"{var}[{msb}:{self.visit(node.lsb)}]"

    def visit_GenerateStatement(self, node: ast.GenerateStatement) -> str:
        """Its items on lines of their own."""
        return "\n".join(["generate", *(self.visit(item) for item in node.items), "endgenerate"])

    def visit_EventStatement(self, node: ast.EventStatement) -> str:
        """The empty statement of a `default: ;`, which the parser keeps as one that waits for anything."""
        del node
        return ";"


@cache
def _generator() -> _Generator:
    return _Generator()


def verilog(node: ast.Node) -> str:
    """A tree as text. Comments and `automatic` are lost."""
    return _generator().visit(node)
