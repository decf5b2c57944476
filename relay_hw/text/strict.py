"""Extension points overridden by the tolerant parser. In: tokens. Out: what the strict format allows."""

from __future__ import annotations

from relay_hw.ir.expr import Constant, Expr
from relay_hw.support.names import did_you_mean
from relay_hw.text.attribute_parser import AttributeParser
from relay_hw.text.lexer import Token

# symbol -> (operator, precedence); all are left-associative
INFIX = {
    "*": ("multiply", 12),
    "/": ("divide", 12),
    "+": ("add", 10),
    "-": ("subtract", 10),
    "<": ("less", 8),
    "<=": ("less_equal", 8),
    ">": ("greater", 8),
    ">=": ("greater_equal", 8),
    "==": ("equal", 7),
    "!=": ("not_equal", 7),
}


class StrictParser(AttributeParser):
    """Refuses what the format does not have."""

    def _end_binding(self, where: str) -> None:
        self.expect(";", where)

    def _left_out(self) -> Expr | None:
        """A result that the text does not write."""
        return None

    def _missing(self, token: Token) -> Expr:
        """The value of an undefined graph variable."""
        raise self.error(f"{token.text[:40]} must be defined before it is used", token)

    def _arrow(self) -> None:
        self.expect("=>", "arm of match")

    def _next_arm(self) -> bool:
        return self.take_comma("}", "match")

    def _has_arguments(self) -> bool:
        """Whether an argument list follows."""
        return self.at("(") or self.at("[")

    def _constant_entry(self, token: Token) -> Expr:
        found = self.entry(token)
        if not isinstance(found, Constant):
            raise self.error(f"{token.text[:60]} must be a constant", token)
        return found

    def _no_operator(self, name: str) -> str:
        """The error for a name that is not an operator."""
        from relay_hw.op import OPS
        from relay_hw.op.tvm_operators import is_known

        if is_known(name):
            return f"operator {name} is not implemented yet"
        hint = did_you_mean(name, [*(op.name for op in OPS), *self.constructors], least=0.75)
        return f"{name[:40]} must be an operator or a constructor{hint}"
