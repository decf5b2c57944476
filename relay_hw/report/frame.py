"""Shows a page in a notebook. In: a self-contained page. Out: an element that keeps its style and script apart."""

from __future__ import annotations

from dataclasses import dataclass

from relay_hw.report.render import render


def framed(page: str, title: str) -> str:
    """The page in a frame that grows to its height."""
    return render("report/templates/frame.html.j2", title=title, page=page)


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """A self-contained page that shows itself; `text` is its HTML."""

    title: str
    text: str

    def __repr__(self) -> str:
        return f"<Page {self.title}>"

    def _repr_html_(self) -> str:
        """Rich display in notebooks."""
        return framed(self.text, self.title)
