"""JSON from files that anybody may have written: one exception, one sentence, bounds on size and depth.

In: text or bytes. Out: the value. It imports nothing of ours, so that every room can read by it.
"""

from __future__ import annotations

import json
from typing import Any, Final, cast

# A document of a network holds its weights; the largest that tests write has a tenth of this.
MOST_BYTES: Final = 1 << 30
# Lists and objects inside one another: a type inside a type inside a pattern needs some thirty.
MOST_NESTED: Final = 200


class DocumentError(ValueError):
    """Text that is no JSON, or more of it than a reader takes. `line`, `column`: where, if that is known."""

    def __init__(self, sentence: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(sentence if line is None else f"{sentence}, line {line}, column {column}")
        self.sentence, self.line, self.column = sentence, line, column


def parse_json(text: str | bytes, most_bytes: int = MOST_BYTES) -> Any:
    """The value of a JSON text, UTF-8 where it is bytes. Raises DocumentError with the place, if one is known."""
    if len(text) > most_bytes:
        raise DocumentError(f"JSON must be at most {most_bytes:,} bytes long, not {len(text):,}")
    try:
        value = json.loads(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise DocumentError(_too_deep()) from None
    except json.JSONDecodeError as error:
        raise DocumentError(error.msg, error.lineno, error.colno) from None
    except UnicodeDecodeError as error:
        raise DocumentError(f"JSON must be UTF-8: byte {error.start:,} is not") from None
    except ValueError:
        # Python turns no more digits than this into an integer, since the time grows with their square.
        raise DocumentError("integers of JSON must have at most 4,300 digits") from None
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    """Readers go into what they read by calls. Level by level, so that this needs none."""
    level: list[Any] = [value]
    for _ in range(MOST_NESTED + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise DocumentError(_too_deep())


def _inside(value: Any) -> list[Any]:
    """What lies in a list or an object, and can hold something itself; nothing in another value."""
    if not isinstance(value, list | dict):
        return []
    items = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
    return [item for item in items if isinstance(item, list | dict)]


def _too_deep() -> str:
    return f"JSON must have at most {MOST_NESTED} lists and objects inside one another, not more"
