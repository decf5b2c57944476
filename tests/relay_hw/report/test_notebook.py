"""What notebooks show of modules, builds and profiles, and the short text of each, which notebooks store beside it."""

from __future__ import annotations

from dataclasses import fields, replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.errors import RelayHwError
from relay_hw.report import Profile, diff, framed
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.models import load_model
from relay_hw.runtime.module import Module
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.profile import timed_report
from relay_hw.support.quote import screen
from tests.hostile import NAMES
from tests.relay_hw.report.test_report import REPORT
from tests.relay_hw.small_models import images, save_branches

PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4), float32], %n: Tensor[(), int32]) -> Tensor[(1, 4), float32] {
  %0 = greater(%n, 0);
  if (%0) {
    add(%x, meta[relay.Constant][0])
  } else {
    clip(%x, a_min=-1.5f, a_max=2f)
  }
}
"""


class Parts(HTMLParser):
    """Texts of an element, each with the style of what it stands in; pages of frames."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[tuple[str, str]] = []
        self.pages: list[str] = []
        self._styles: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._styles.append(given.get("style") or "")
        self.pages += [given["srcdoc"] or ""] if "srcdoc" in given else []

    def handle_endtag(self, tag: str) -> None:
        self._styles.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((data, self._styles[-1]))


def page_of(shown: str) -> str:
    """The page in a frame."""
    (page,) = Parts(shown).pages
    return page


def colours(shown: str) -> dict[str, str]:
    """The colour of each text that has one of its own."""
    return {text: style for text, style in Parts(shown).texts if style.startswith("color:")}


def text_of(shown: str) -> str:
    return "".join(text for text, _ in Parts(shown).texts)


def program() -> relay.IRModule:
    whole = PROGRAM.replace("meta[relay.Constant][0]", "%x")
    return relay.transform.InferType()(relay.fromtext(whole))


def test_a_module_is_shown_as_its_text_in_colours() -> None:
    mod = program()
    shown = mod._repr_html_()
    assert text_of(shown) == str(mod)
    found = colours(shown)
    assert found["def"] == found["if"] == found["else"] != found["@main"] == found["%x"] == found["%0"]
    assert found["-1.5f"] == found["0"] and "clip" not in found
    assert repr(mod) == "<IRModule @main>"


def test_a_function_is_shown_as_its_text() -> None:
    func = program()["main"]
    assert text_of(func._repr_html_()) == str(func) and repr(func) == "<Function>"
    x = relay.var("x", shape=(1, 4))
    large = relay.nn.dense(x, relay.const(np.ones((3, 4), "float32")), units=3)
    found = colours(large._repr_html_())
    remark = "/* The metadata section is left out: astext() writes it. */"
    assert any(remark in text for text in found) and "meta[relay.Constant][0]" in found


@pytest.mark.parametrize("name", [name for name in NAMES if name])
def test_names_are_shown_as_text(name: str) -> None:
    x = relay.var(name, shape=(1, 4))
    try:
        shown = relay.nn.relu(x)._repr_html_()
    except RelayHwError:
        pytest.fail(f"the printer writes {name!r} so that the lexer reads it")
    assert text_of(shown) == screen(str(relay.nn.relu(x))) and shown.count("<pre") == 1


def test_a_frame_holds_a_page_and_nothing_of_it() -> None:
    page, title = "<html>\"'&<b>x</b></html>", 'a "name" <b>'
    shown = framed(page, title)
    assert page_of(shown) == page and shown.count("<") == 2


def test_a_profile_shows_its_tables() -> None:
    found = Profile(**{field.name: getattr(REPORT, field.name) for field in fields(REPORT)})
    page = page_of(found._repr_html_())
    assert 'id="layers"' in page and 'id="views"' not in page
    whole = found.page()
    assert page_of(whole._repr_html_()) == found.to_html() == whole.text and 'id="views"' in whole.text
    assert repr(whole) == "<Page net & more on tiny>"
    assert repr(found) == "<Profile net & more on tiny: 1,824 cycles>"
    assert str(found) == found.to_text() and "1,824 cycles an inference" in str(found)


def test_a_difference_shows_its_page() -> None:
    found = diff(REPORT, replace(REPORT, strategy="w4a8"))
    title = f"net & more on tiny, {REPORT.strategy} beside net & more on tiny, w4a8"
    assert repr(found) == f"<Difference of {title}: 1,824 and 1,824 cycles>"
    assert str(found) == found.to_text() and "strategy: int8 -> w4a8" in str(found)
    page = page_of(found._repr_html_())
    assert page == found.to_html() and f"<h1>{escape(title)}</h1>" in page


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledModel:
    """A network with a shortcut and a layer on the host."""
    model = load_model(save_branches(tmp_path_factory.mktemp("net") / "net.onnx"))
    options = CompileOptions(config="tiny", host_target="numpy", name="net")
    return compile_model(model.mod, options, params=model.params, calibration={"image": images(8, 5)})


@pytest.fixture(scope="module")
def artifact(compiled: CompiledModel, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return compiled.save(tmp_path_factory.mktemp("build") / "net")


def test_a_build_shows_where_each_operator_runs(compiled: CompiledModel, artifact: Artifact) -> None:
    shown = artifact._repr_html_()
    page = page_of(shown)
    for row in artifact.manifest.layers:
        assert f'title="{row.name}"' in page, row.name
    assert page.count('<span class="chip host">host</span>') == sum(r.where == "host" for r in compiled.layers)
    assert f"<b>{timed_report(artifact).cycles:,}</b>" in page
    assert shown == compiled._repr_html_() == Module(artifact)._repr_html_() == Module(compiled)._repr_html_()


def test_short_texts(compiled: CompiledModel, artifact: Artifact) -> None:
    assert repr(artifact) == f"<Artifact {artifact.path}>" and repr(compiled) == "<CompiledModel net>"
    inputs, outputs = (", ".join(row.name for row in rows) for rows in (compiled.inputs, compiled.outputs))
    assert repr(Module(compiled)) == f"<Module {inputs} -> {outputs}>"


def test_showing_a_build_writes_nothing(compiled: CompiledModel, tmp_path: Path) -> None:
    module = Module(compiled)
    module._repr_html_()
    assert module._artifact is None
