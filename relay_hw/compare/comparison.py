"""The result of a comparison, with its output as text, JSON, CSV and HTML.

In: findings. Out: `Comparison`: terminal text, CSV, JSON, HTML page, rich display in notebooks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relay_hw.compare.findings import Findings
from relay_hw.compare.page import render_page
from relay_hw.compare.store import Store
from relay_hw.compare.table import comparison_text
from relay_hw.report import framed


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Findings):
    """Strategies on one network: findings that show and save themselves."""

    def to_text(self, width: int | None = None) -> str:
        """A table for terminals of `width` characters; None: unlimited."""
        return comparison_text(self, width)

    def to_html(self, layers: Sequence[str] | None = None) -> str:
        """A self-contained HTML page with histograms of `layers` (default: all). Raises InputError."""
        return render_page(self, layers)

    def files(self, folder: Path, layers: Sequence[str] | None = None) -> dict[str, bytes]:
        """Contents of `report.json`, `report.csv` and `report.html`, whose page links what of builds is in `folder`.

        Raises InputError for an unknown layer.
        """
        data = json.dumps(self.to_json(), indent=1) + "\n"
        texts = {"report.json": data, "report.csv": self.to_csv(), "report.html": render_page(self, layers, folder)}
        return {name: text.encode() for name, text in texts.items()}

    def save(self, folder: str | Path) -> None:
        """Write the three files into `folder`, created if missing. Raises InputError."""
        store = Store(Path(folder))
        for name, content in self.files(store.folder).items():
            store.put(store.folder / name, content)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.rows)} strategies of {self.model}>"

    def _repr_html_(self) -> str:
        """Rich display in notebooks: the page, with tables and plots."""
        return framed(self.to_html(), f"{self.model}: quantization strategies")
