"""Parses operator attributes. In: tokens. Out: values by name."""

from __future__ import annotations

from typing import Any

from relay_hw.text.lexer import Token, TokenKind
from relay_hw.text.type_parser import TypeParser


class AttributeParser(TypeParser):
    """Reads `name=value, ...`. Devices that the metadata section does not have are left open by `skip_attributes`."""

    _devices_matter: bool = True

    def at_attribute(self) -> bool:
        """Whether `name=` comes next."""
        return self.token.kind in (TokenKind.NAME, TokenKind.KEYWORD) and self.ahead().text == "="

    def attributes(self, attrs: dict[str, Any], places: dict[str, Token]) -> None:
        """Read attributes into `attrs`, and their spans into `places`."""
        while self.at_attribute():
            token = self.advance()
            self.advance()
            if token.text in attrs:
                raise self.error(f"attribute {token.text[:40]} must be given once", token)
            places[token.text] = token
            attrs[token.text] = self.nested(self._attribute_value)
            if not self.take(","):
                return

    def skip_attributes(self) -> None:
        """Skip attributes."""
        self._devices_matter = False
        self.attributes({}, {})
        self._devices_matter = True

    def _attribute_value(self) -> Any:
        token = self.advance()
        value: Any = token.value
        match token.kind:
            case TokenKind.INT | TokenKind.FLOAT:
                return value[0]
            case TokenKind.STRING:
                return value
            case TokenKind.NAME if token.text in ("True", "False"):
                return token.text == "True"
            case TokenKind.NAME if token.text in ("None", "nullptr"):
                return None
            case TokenKind.META if value[0] == "VirtualDevice" and value not in self.metadata:
                if self._devices_matter:
                    raise self.error(
                        f"meta[VirtualDevice][{value[1]}] must be a device of the metadata section: write the text "
                        'with it, or the device by name (virtual_device="cuda(0)")',
                        token,
                    )
                return ""
            case TokenKind.META:
                return self.entry(token)
            case TokenKind.SYMBOL if token.text == "[":
                return self._attribute_values("]")
            case TokenKind.SYMBOL if token.text == "(":
                found = self._attribute_values(")")
                return found[0] if len(found) == 1 else found
            case (
                TokenKind.LOCAL | TokenKind.GLOBAL | TokenKind.GRAPH | TokenKind.NAME | TokenKind.KEYWORD
                | TokenKind.VERSION | TokenKind.SYMBOL | TokenKind.END
            ):  # fmt: skip
                self.place -= token.kind is not TokenKind.END
                raise self.wanted("a number, string, list, True, False or None", "attribute")

    def _attribute_values(self, close: str) -> tuple[Any, ...]:
        found: list[Any] = []
        while not self.at(close):
            found.append(self.nested(self._attribute_value))
            if not self.take_comma(close, "list"):
                break
        self.expect(close, "list")
        return tuple(found)
