"""Relay's text format, `#[version = "0.0.5"]`."""

from relay_hw.text.parser import parse, parse_expr
from relay_hw.text.printer import print_expr, print_module

__all__ = ["parse", "parse_expr", "print_expr", "print_module"]
