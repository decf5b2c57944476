"""The result of an exploration, with its output as text, JSON, CSV and HTML.

In: findings. Out: `Exploration`: terminal text, CSV, JSON, HTML page, rich display in notebooks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from relay_hw.explore.findings import Findings
from relay_hw.explore.page import render_page
from relay_hw.explore.table import exploration_text
from relay_hw.report import framed


@dataclass(frozen=True, eq=False, repr=False)
class Exploration(Findings):
    """Points of a space on one network: findings that show themselves."""

    def to_text(self, width: int | None = None) -> str:
        """Tables for terminals of `width` characters; None: unlimited."""
        return exploration_text(self, width)

    def to_html(self) -> str:
        """A self-contained HTML page."""
        return render_page(self)

    def files(self) -> dict[str, bytes]:
        """Contents of `explore.json`, `explore.csv` and `explore.html`."""
        data = json.dumps(self.to_json(), indent=1) + "\n"
        texts = {"explore.json": data, "explore.csv": self.to_csv(), "explore.html": self.to_html()}
        return {name: text.encode() for name, text in texts.items()}

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Exploration of {len(self.rows):,} accelerators for {self.model}>"

    def _repr_html_(self) -> str:
        """Rich display in notebooks: the page, with tables and plots."""
        return framed(self.to_html(), f"{self.model}: accelerators")
