"""Shows a page in a notebook. In: a self-contained page. Out: an element that keeps its style and script apart."""

from __future__ import annotations

from typing import Final

from relay_hw.support.quote import html

# Of the frame until the page has loaded, and where notebooks let no handler run: the page then scrolls in it.
_HEIGHT: Final = 600
_FIT: Final = "this.style.height=this.contentDocument.documentElement.scrollHeight+'px'"


def framed(page: str, title: str) -> str:
    """The page in a frame that grows to its height."""
    style = f"width:100%;height:{_HEIGHT}px;border:0"
    return f'<iframe srcdoc="{html(page)}" style="{style}" onload="{html(_FIT)}" title="{html(title)}"></iframe>'
