"""Foreign text in every language that is written here, read back by that language's reader: 200 names, no breakout."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from relay_hw.accel.isa.config import config_from_dict, load_config
from relay_hw.accel.isa.errors import ConfigError
from relay_hw.support.quote import (
    c_string,
    comment,
    csv_cell,
    file_name,
    html,
    identifier,
    line,
    markdown,
    screen,
    sentence,
    shell_word,
    tcl_word,
)
from tests.hostile import MARK, NAMES
from tests.html_page import Page

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
TERMINAL = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_a_line_for_terminals() -> None:
    for name in NAMES:
        text = line(name)
        assert not {unicodedata.category(letter) for letter in text} & TERMINAL
        assert line(text) == text, "what is visible stays"
        assert screen(f"{name}\n{name}").replace("\n", "") == line(name.replace("\n", "")) * 2


def test_what_can_be_seen_is_shown_as_it_is() -> None:
    for text in ("conv/weight:0", "mö del", "模型", "🤖", 'a "b" \\ c', "(1, 2)…"):
        assert line(text) == text
    assert line("a\x1b]0;b\x07\x9b\u202e\udc80\U000e0041") == r"a\x1b]0;b\x07\x9b\u202e\udc80\U000e0041"
    assert line("a\nb") == r"a\nb" and screen("a\nb\rc") == "a\nb\\rc"


class Part(Page):
    """A part of a page, in which a declaration has no place."""

    handle_decl = Page.handle_comment


def test_html_holds_text_and_attributes() -> None:
    for name in NAMES:
        page = Part(f"<p title=\"{html(name)}\" class='{html(name)}'>{html(name)}</p>")
        assert page.tags == [("p", {"title": screen(name), "class": screen(name)})]
        assert (page.text, page.other) == (screen(name), [])


@pytest.mark.skipif(CC is None, reason="no C compiler on PATH")
def test_c_reads_strings_and_comments(tmp_path: Path) -> None:
    """One program with every name as a string, in a comment before it and behind it; it writes the strings back."""
    rows = "\n".join(f"/* {comment(n)} */ {{{c_string(n)}, {len(n.encode())}}}, /*{comment(n)}*/" for n in NAMES)
    text = f"""#include <stdio.h>
static const struct {{ const char *text; size_t bytes; }} names[] = {{
{rows}
}};
int main(void) {{
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++) fwrite(names[i].text, 1, names[i].bytes + 1, stdout);
    return 0;
}}
"""
    (tmp_path / "names.c").write_text(text)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o", "names", "names.c"]
    done = subprocess.run([str(CC), *strict], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = subprocess.run([tmp_path / "names"], cwd=tmp_path, capture_output=True, check=True).stdout
    assert said == b"".join(name.encode() + b"\0" for name in NAMES)
    assert not (tmp_path / MARK).exists()


def test_c_strings_have_no_holes_of_statements() -> None:
    assert "$" not in "".join(map(c_string, NAMES))


def test_c_strings_hold_what_is_no_unicode() -> None:
    assert c_string("a\udc80") == r'"a\134udc80"'


def test_comments_stay_on_their_line() -> None:
    """In /* */ of C and Verilog, behind // and # to the end of the line."""
    for name in NAMES:
        text = comment(name)
        assert text.isprintable() or not {unicodedata.category(letter) for letter in text} & TERMINAL
        assert "*/" not in text and "/*" not in text and "??" not in text
        assert not text.endswith(("\\", "*", "/", "?"))


def _tcl(script: str) -> str:
    tkinter = pytest.importorskip("tkinter", reason="this Python has no Tcl")
    return str(tkinter.Tcl().eval(script))


def test_tcl_reads_one_word() -> None:
    for name in NAMES:
        assert _tcl(f"# {comment(name)}\nset a {tcl_word(name)}\nset b done\nset a") == line(name)


def test_tcl_words_have_nothing_that_acts() -> None:
    """Without Tcl at hand: every character that Tcl obeys inside of quotes comes with a backslash."""
    for name in NAMES:
        inner = tcl_word(name)[1:-1]
        assert not re.search(r'["$\[\]{}\\\n]', re.sub(r'\\[\\"$\[\]{}]', "", inner))


def test_a_shell_reads_one_word() -> None:
    words = " ".join(map(shell_word, NAMES))
    code = "import sys; print(ascii(sys.argv[1:]))"
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -c '{code}' {words}"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{[line(name) for name in NAMES]!a}\n"


def test_a_cell_is_one_cell_and_no_formula() -> None:
    for name in NAMES:
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerow([csv_cell(name), csv_cell(-1), csv_cell(2.5)])
        text = stream.getvalue()
        assert text.count("\n") == 1
        cells = next(csv.reader(io.StringIO(text)))
        assert len(cells) == 3 and cells[1:] == ["-1", "2.5"]
        assert cells[0].removeprefix("'") == line(name).removeprefix("'")
        assert not cells[0].startswith(("=", "+", "-", "@", "\t", "\r"))


def test_words_and_file_names() -> None:
    for name in NAMES:
        assert re.fullmatch(r"\w{0,60}", identifier(name), re.ASCII)
        assert re.fullmatch(r"[\w.-]{0,60}", file_name(name), re.ASCII)
        assert "/" not in file_name(name) and "\\" not in file_name(name)


def test_a_sentence_is_one_line_that_a_person_can_read() -> None:
    for name in NAMES:
        assert line(sentence(name)) == sentence(name)
    assert sentence("a\nb\x1b") == "a b\\x1b"
    assert sentence("must be a, not " + "x" * 501 + " here") == "must be a, not " + "x" * 500 + "… here"
    assert sentence("x" * 500) == "x" * 500
    assert sentence("ab " * 3_333) == "ab " * 3_333
    assert sentence("ab " * 4_000) == ("ab " * 4_000)[:9_999] + "…"
    assert sentence("\x1b " * 9_999_999) == sentence("\x1b " * 5_000)


def test_markdown_has_no_marks() -> None:
    for name in NAMES:
        assert not re.search(r"[`*\[\]<>#|!&~$]", re.sub(r"\\[\\`*{}\[\]<>#|!&~$]", "", markdown(name)))


def test_names_of_configurations_are_words() -> None:
    """They go into file names, programs and Verilog: hardly any of these is taken, and those are harmless."""
    for name in NAMES:
        values = {key: getattr(load_config("tiny"), key) for key in load_config("tiny").__slots__ if key != "name"}
        try:
            config = config_from_dict(values, name)
        except ConfigError as error:
            assert str(error).startswith(
                "configuration name must be 1 to 64 letters, digits, '_', '.', '+' and '-', not "
            )
            assert line(error) == str(error)
        else:
            assert (
                re.fullmatch(r"[\w.+-]+", config.name, re.ASCII)
                and config.name.strip(".")
                and config.name[0] not in ".-"
            )
