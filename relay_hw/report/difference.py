"""Two builds side by side, to print and to show. In: two measured reports. Out: `Difference`: text, JSON, HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relay_hw.report.difference_page import difference_title, render_difference
from relay_hw.report.difference_text import difference_text
from relay_hw.report.frame import framed
from relay_hw.report.matching import Matching, match_layers, matching_json
from relay_hw.report.model import Report
from relay_hw.report.text import number


@dataclass(frozen=True, slots=True, repr=False)
class Difference(Matching):
    """Two builds, layer beside layer: pairs that show themselves."""

    def to_text(self, width: int | None = None) -> str:
        """A table for terminals of `width` characters; None: unlimited."""
        return difference_text(self, width)

    def to_json(self) -> dict[str, Any]:
        """The object that `relay-hw diff --json` prints."""
        return matching_json(self)

    def to_html(self) -> str:
        """A self-contained HTML page, with both networks where there are some."""
        return render_difference(self)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        before, after = map(number, self.cycles)
        return f"<Difference of {difference_title(self)}: {before} and {after} cycles>"

    def _repr_html_(self) -> str:
        """Rich display in notebooks: the page."""
        return framed(self.to_html(), difference_title(self))


def diff(left: Report, right: Report) -> Difference:
    """Match all layers of two builds' profiles, and count the cycles that each gains and loses."""
    found = match_layers(left, right)
    return Difference(found.left, found.right, found.settings, found.pairs)
