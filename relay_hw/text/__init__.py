"""Reads and writes Relay's text format, `#[version = "0.0.5"]`, and modules as JSON."""

from relay_hw.text.highlight import highlighted
from relay_hw.text.json.reader import load_json
from relay_hw.text.json.writer import save_json
from relay_hw.text.params import load_param_dict, save_param_dict
from relay_hw.text.parser import parse, parse_expr
from relay_hw.text.printer import print_expr, print_module, print_with_lines
from relay_hw.text.tolerant import Note, Repaired, parse_tolerant

__all__ = [
    "Note",
    "Repaired",
    "highlighted",
    "load_json",
    "load_param_dict",
    "parse",
    "parse_expr",
    "parse_tolerant",
    "print_expr",
    "print_module",
    "print_with_lines",
    "save_json",
    "save_param_dict",
]
