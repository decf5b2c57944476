"""A report that shows itself. In: a report. Out: `Profile`: terminal text, HTML page, rich display in notebooks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from relay_hw.report.build_page import render_html
from relay_hw.report.frame import Page, framed
from relay_hw.report.model import Report
from relay_hw.report.text import layer_table, number, placement, summary
from relay_hw.support.quote import line


@dataclass(frozen=True, slots=True, repr=False)
class Profile(Report):
    """Layers of a compiled model: where each runs and, once a device has run it, where its cycles go."""

    @property
    def title(self) -> str:
        """The model and its configuration."""
        return f"{line(self.model)} on {line(self.config)}"

    def to_text(self, width: int | None = None) -> str:
        """The table of layers and a summary, for terminals of `width` characters; None: unlimited."""
        return "\n".join(filter(None, [layer_table(self, width), "", summary(self), placement(self)]))

    def to_html(self) -> str:
        """A self-contained HTML page, with the network and timelines where there are some."""
        return render_html(self)

    def page(self) -> Page:
        """The HTML page for a notebook, with the network and timelines; the profile itself shows the tables alone."""
        return Page(self.title, self.to_html())

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Profile {self.title}: {number(self.cycles)} cycles>"

    def _repr_html_(self) -> str:
        """Rich display in notebooks: the page's tables."""
        return framed(render_html(replace(self, pictures=(), network=None)), self.title)
