"""A launch as an SVG picture: layers, what the array did or waited for, how busy the other units were.

In: `Timeline`. Out: text of an `<svg>` element; colours are classes that the page's style sheet names.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.accel.sim.causes import Cause
from relay_hw.report.model import Band, Timeline
from relay_hw.support.quote import html

WIDTH = 1000
_LEFT, _RIGHT = 84, 10
_PLOT = WIDTH - _LEFT - _RIGHT
# Top and height of each row.
_BANDS, _ARRAY, _UNITS, _UNIT, _GAP = 20, 100, 30, 30, 8
# A letter of a label takes about this many units; narrower bands are not drawn at all.
_LETTER, _NARROWEST = 7.6, 0.4
_TICKS = 8


def timeline_svg(timeline: Timeline) -> str:
    """The picture of one launch, as wide as the page."""
    parts = [_bands(timeline), _array(timeline)]
    top = _BANDS + 2 + _ARRAY + _GAP
    for unit, shares in timeline.units.items():
        parts.append(_label(unit, top + _UNIT / 2 + 4))
        parts.append(f'<path class="unit" d="{_area(shares, top, _UNIT)}"/>')
        parts.append(_floor(top + _UNIT))
        top += _UNIT + _GAP
    parts.append(_axis(timeline.cycles, top))
    label = f"timeline of @{html(timeline.function)}"
    return f'<svg viewBox="0 0 {WIDTH} {top + 22}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _x(cycle: float, cycles: int) -> float:
    return _LEFT + _PLOT * cycle / cycles


def _label(text: str, y: float) -> str:
    return f'<text class="soft" x="{_LEFT - 8}" y="{y:.0f}" text-anchor="end">{html(text)}</text>'


def _floor(y: float) -> str:
    return f'<path class="rule" d="M{_LEFT} {y}h{_PLOT}"/>'


def _bands(timeline: Timeline) -> str:
    shades: dict[str, int] = {}
    parts = [_label("layer", 14)]
    for band in timeline.bands:
        shade = shades.setdefault(band.layer, len(shades) % 2)
        if _PLOT * (band.end - band.begin) >= _NARROWEST * timeline.cycles:
            parts.append(_band(band, shade, timeline.cycles))
    return "".join(parts)


def _band(band: Band, shade: int, cycles: int) -> str:
    begin, width = _x(band.begin, cycles), _PLOT * (band.end - band.begin) / cycles
    room = int((width - 6) / _LETTER)
    # Names of neighbours differ at their ends.
    name = html(band.layer if len(band.layer) <= room else f"…{band.layer[1 - room :]}")
    text = f'<text x="{begin + 4:.1f}" y="14">{name}</text>' if room >= 3 else ""
    tip = f"<title>{html(band.layer)}: cycles {band.begin:,} to {band.end:,}</title>"
    return f'<g>{tip}<rect class="band{shade}" x="{begin:.1f}" y="0" width="{width:.1f}" height="{_BANDS}"/>{text}</g>'


def _array(timeline: Timeline) -> str:
    """Causes stacked, the last one drawn first as a part of the sum of all."""
    top = _BANDS + 2
    sums = [0.0] * len(next(iter(timeline.causes.values()), ()))
    layers: list[str] = []
    for cause in Cause:
        shares = timeline.causes.get(cause, ())
        if any(shares):
            sums = [a + b for a, b in zip(sums, shares, strict=True)]
            layers.append(f'<path class="c-{cause}" d="{_area(sums, top, _ARRAY)}"/>')
    return _label("array", top + _ARRAY / 2 + 4) + "".join(reversed(layers)) + _floor(top + _ARRAY)


def _area(shares: Sequence[float], top: float, height: float) -> str:
    """Path of the area below `shares` of the height, one step a share; equal neighbours are one step."""
    bottom, width = top + height, _PLOT / max(len(shares), 1)
    steps, level = [f"M{_LEFT} {bottom:g}"], bottom
    for k, share in enumerate(shares):
        y = round(bottom - height * min(share, 1.0), 1)
        if y != level:
            steps.append(f"H{_LEFT + k * width:.1f}V{y:g}")
            level = y
    return "".join([*steps, f"H{_LEFT + _PLOT}V{bottom:g}Z"])


def _axis(cycles: int, top: float) -> str:
    step = _round_step(cycles / _TICKS)
    parts: list[str] = []
    for cycle in range(0, cycles + 1, step):
        x = _x(cycle, cycles)
        anchor = "middle" if x < WIDTH - 40 else "end"
        parts.append(f'<path class="rule" d="M{x:.1f} {top - 4:g}v5"/>')
        parts.append(f'<text class="soft" x="{x:.1f}" y="{top + 16:g}" text-anchor="{anchor}">{cycle:,}</text>')
    return "".join(parts)


def _round_step(least: float) -> int:
    """The smallest 1, 2 or 5 times a power of ten that is at least `least`."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= least:
                return factor * power
        power *= 10
