"""All entry points, in the order of the report. In: nothing. Out: entries by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tests.fuzz import arrays, devices, languages, networks
from tests.fuzz.judge import Entry

ENTRIES: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        entry.name: entry
        for family in (networks.ENTRIES, languages.ENTRIES, devices.ENTRIES, arrays.ENTRIES)
        for entry in family
    }
)
