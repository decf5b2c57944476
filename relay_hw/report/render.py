"""Renders the templates of pages: what is put into them is text, never HTML.

In: the name of a template in `relay_hw`, its values. Out: a self-contained page, whose policy lets its own script run
and no other, and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from relay_hw.report.script import script
from relay_hw.report.text import number, percent
from relay_hw.support.quote import plain_json, screen

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, modules: tuple[str, ...] = (), **values: Any) -> str:
    """The page of a template. `modules`: of its script, in the folder `page`. The same values give the same text.

    Raises jinja2.UndefinedError for a value that the template needs and does not get.
    """
    code = script(modules) if modules else ""
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return _environment().get_template(template).render(values, script=code, digest=digest)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    # Jinja takes a fifth of a second to import, which commands that make no page need not wait for.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("relay_hw", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"number": number, "percent": percent}
    found.policies["json.dumps_function"] = plain_json
    found.policies["json.dumps_kwargs"] = {}
    return found


def _shown(value: object) -> object:
    """A value as text in which nothing is invisible; HTML, which only templates make, stays as it is."""
    return value if hasattr(value, "__html__") else screen(value)
