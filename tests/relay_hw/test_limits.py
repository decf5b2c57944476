"""The limits of models of strangers: their sentences, and how they are changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay_hw.cli.main import main
from relay_hw.errors import InputError
from relay_hw.frontend import from_onnx
from relay_hw.limits import Limits, changed, product
from tests.relay_hw.small_models import save_plain


def test_more_than_a_limit_says_how_to_raise_it() -> None:
    Limits(nodes=5).check("nodes", "nodes of net.onnx", 5)
    sentence = (
        r"^nodes of net\.onnx must be at most 5, not 1,000: --limit nodes=NUMBER, or limits=Limits\(nodes=NUMBER\)"
    )
    with pytest.raises(InputError, match=sentence):
        Limits(nodes=5).check("nodes", "nodes of net.onnx", 1000)


def test_limits_are_changed_by_name() -> None:
    assert changed({"nodes": 7}) == Limits(nodes=7)
    with pytest.raises(InputError, match=r"a limit must be one of file_bytes, .*, seconds, not node"):
        changed({"node": 7})
    with pytest.raises(InputError, match="limit nodes must be at least 0, not -1"):
        changed({"nodes": -1})
    assert changed({"nesting": 100}).nesting == 100
    with pytest.raises(InputError, match=r"^limit nesting must be at most 100, not 1,000: protobuf reads nothing deep"):
        changed({"nesting": 1000})


@pytest.mark.parametrize(
    ("sizes", "want"),
    [((), 1), ((3, 4), 12), ((1 << 40, 1 << 40), 1 << 64), ((1 << 40,) * 9999, 1 << 64), ((1 << 40, 1 << 40, 0), 0)],
)
def test_a_product_stays_a_short_number(sizes: tuple[int, ...], want: int) -> None:
    assert product(sizes) == want


def test_a_file_is_measured_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    with pytest.raises(
        InputError, match=r"the bytes of .*net\.onnx must be at most 2,147,483,647, not 1,099,511,627,776"
    ):
        from_onnx(path)


def test_the_command_line_changes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save_plain(tmp_path / "plain.onnx")
    assert main(["check", str(path), "--limit", "file_bytes=100"]) == 2
    assert "must be at most 100, not" in capsys.readouterr().err
    assert main(["check", str(path), "--limit", "file_bytes=1000000"]) == 0
    capsys.readouterr()
    for text in ("nodes", "nodes=-1", "nodes=1e3", "nodes=" + "9" * 5000, "=4"):
        assert main(["check", str(path), "--limit", text]) == 2
        assert "a limit must be" in capsys.readouterr().err
