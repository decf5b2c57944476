"""Shows a page in a notebook. In: a self-contained page. Out: an element that keeps its style and script apart."""

from __future__ import annotations

from relay_hw.report.render import render


def framed(page: str, title: str) -> str:
    """The page in a frame that grows to its height."""
    return render("report/templates/frame.html.j2", title=title, page=page)
