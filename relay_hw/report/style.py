"""The common style of all pages: colours, cards, tables, chips. In: title and body. Out: the page."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --ground: #fbfbfa; --card: #ffffff; --ink: #1d2126; --soft: #667080; --line: #e3e6ea;
  --roof: #8fb0ec; --chip: #eaf0fb; --chip-host: #f8efe2; --band0: #dfe6f1; --band1: #eef1f6; --products: #2f6fd0;
  --lanes: #9cc0f2; --alu: #3aa394; --bus: #e08a2e; --latency: #f2bf86; --unfold: #a8641c; --store: #c2504a;
  --output: #8d62c9; --pipeline: #c5aee4; --queue: #c9b13b; --fetch: #e6d994; --fill: #b3bac3; --drain: #7c8794;
  --reload: #7a3e12; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171b; --card: #1b1f25; --ink: #e7eaee; --soft: #98a3b2;
  --line: #2c323b; --roof: #34507f; --chip: #22304a; --chip-host: #3a2e1d; --band0: #2b3545; --band1: #222a36;
  --products: #5b93ea; --lanes: #34507f; --alu: #4cb8a8; --bus: #e79b4b; --latency: #8f6331; --unfold: #f3c898;
  --store: #d96b65; --output: #a583db; --pipeline: #5c4680; --queue: #d2bd55; --fetch: #7d7033; --fill: #6b7480;
  --drain: #9aa4b1; --reload: #c98b58; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1600px; margin: 0 auto; padding: 36px 20px 60px; }
h1 { font-size: 25px; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 16px; margin: 34px 0 10px; }
p { margin: 4px 0; color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(215px, 1fr)); gap: 10px; margin-top: 22px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; }
.tile b { display: block; font-size: 21px; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { padding: 7px 12px; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child td { border-bottom: 0; }
tfoot td { border-top: 1px solid var(--line); border-bottom: 0; font-weight: 600; }
th { color: var(--soft); font-weight: 500; white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.name { font-weight: 500; white-space: nowrap; }
.chip { border-radius: 99px; padding: 1px 9px; font-size: 12.5px; background: var(--chip); white-space: nowrap; }
.chip.host { background: var(--chip-host); }
.warn { color: var(--store); }
.why { color: var(--soft); } td span.why { font-size: 13px; } td .shape { white-space: nowrap; }
.layers th, .layers td { padding: 7px 6px; } .layers th:first-child,
.layers td:first-child { padding-left: 12px; } .layers td.name { white-space: normal; overflow-wrap: anywhere;
  min-width: 9em; } .layers td.name, .layers th:first-child, .layers tfoot td:first-child { position: sticky; left: 0;
  background: var(--card); } .layers td.text { min-width: 14em; }
svg { display: block; width: 100%; height: auto; padding: 14px 16px; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg .soft { fill: var(--soft); }
svg .roof { fill: var(--roof); }
svg .mark { fill: var(--ink); }
svg .rule { stroke: var(--line); fill: none; }
svg .unit { fill: var(--soft); opacity: 0.55; }
svg .band0 { fill: var(--band0); } svg .band1 { fill: var(--band1); }
.legend { font-size: 13px; } .legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px;
  margin: 0 5px 0 2px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 18px; margin: 0; padding: 12px 16px; }
dt { color: var(--soft); } dd { margin: 0; }
"""


def page(title: str, body: str, style: str = "", script: str = "", data: str = "") -> str:
    """A self-contained page of `title` and `body`, which are HTML; `style` is added to the common style.

    `data`: elements that `script` reads. The page lets no other script run, and nothing be fetched.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline';"
    policy += f" script-src 'sha256-{_digest(script)}';" if script else ""
    code = f"{data}\n<script>{script}</script>\n" if script else ""
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{title} · relay-hw</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>{STYLE}{style}</style></head>\n<body><main>\n{body}\n</main>{code}</body></html>\n"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
