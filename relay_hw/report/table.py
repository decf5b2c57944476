"""Text tables for terminals: fits columns to a width, wraps text, and names the columns left out.

In: rows of cells, which may hold untrusted names. Out: lines without trailing spaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from relay_hw.support.quote import line

# Between two columns, and the fewest characters that a column of text is squeezed to.
_GAP, _NARROWEST = 2, 12


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: frozenset[str] = frozenset(),
    width: int | None = None,
    optional: Sequence[str] = (),
) -> str:
    """A table with columns as wide as their widest cell; those named in `right` are right-aligned.

    In `width` columns of a terminal, text wraps; where that is not enough, columns named in `optional` are left out, in
    their order, and a last line says so. Without a width nothing is wrapped or left out.
    """
    rows = [tuple(map(line, row)) for row in rows]
    shown, left_out = list(header), list[str]()
    for name in optional if width is not None else ():
        if name not in shown or _least(header, rows, right, shown) <= (width or 0):
            continue
        shown.remove(name)
        left_out.append(name)
    places = [header.index(name) for name in shown]
    cells = [[row[place] for place in places] for row in rows]
    widths = _fitted(shown, cells, right, width)
    lines = [_line(shown, shown, widths, right), _line(["-" * w for w in widths], shown, widths, right)]
    for row in cells:
        lines += _wrapped(row, shown, widths, right)
    if left_out:
        lines += wrap(f"(no room for {', '.join(left_out)}: --wide shows all)", width or 0)
    return "\n".join(lines)


def _natural(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]


def _least(header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[str], shown: Sequence[str]) -> int:
    """The smallest width of the columns `shown`, with text wrapped as far as allowed."""
    widths = dict(zip(header, _natural(header, rows), strict=True))
    return _total([widths[n] if n in right else _squeezed(n, widths[n]) for n in shown])


def _squeezed(name: str, width: int) -> int:
    return min(width, max(_NARROWEST, len(name)))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _fitted(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[str], width: int | None
) -> list[int]:
    """Column widths, the widest text columns narrowed until a line fits."""
    widths = _natural(header, rows)
    if width is None:
        return widths
    text = {i: _squeezed(name, widths[i]) for i, name in enumerate(header) if name not in right}
    while _total(widths) > width:
        wide = [i for i, least in text.items() if widths[i] > least]
        if not wide:
            break
        widths[max(wide, key=lambda i: widths[i])] -= 1
    return widths


def _wrapped(row: Sequence[str], header: Sequence[str], widths: Sequence[int], right: frozenset[str]) -> list[str]:
    """The lines of a row."""
    parts = [
        [cell] if len(cell) <= width else wrap(cell, width, break_on_hyphens=False)
        for cell, width in zip(row, widths, strict=True)
    ]
    height = max(map(len, parts), default=1)
    return [_line([part[k] if k < len(part) else "" for part in parts], header, widths, right) for k in range(height)]


def _line(cells: Sequence[str], header: Sequence[str], widths: Sequence[int], right: frozenset[str]) -> str:
    parts = (c.rjust(w) if h in right else c.ljust(w) for c, w, h in zip(cells, widths, header, strict=True))
    return (" " * _GAP).join(parts).rstrip()


def some(names: Sequence[str], most: int = 3) -> str:
    """`a, b, c and 4 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
