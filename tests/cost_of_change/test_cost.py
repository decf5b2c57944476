"""What a change costs: recipes of CONTRIBUTING.md, carried out on a copy of the sources, counted and tested there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cost_of_change.changes import ALU, OPERATOR, RECIPES, ROUNDING, TARGET
from tests.cost_of_change.recipe import CHECKS, Recipe, changed, copied, named_files, run, run_tests


def by_heading(recipe: Recipe) -> str:
    return recipe.check.removesuffix(".py")


@pytest.mark.parametrize("recipe", [one for one in RECIPES if one is not TARGET], ids=by_heading)
def test_few_files_are_edited_and_the_recipe_names_them(recipe: Recipe) -> None:
    assert len(recipe.files) <= recipe.bar
    always, at_times = named_files(recipe.heading)
    # A recipe names the folder of a file that is new.
    edited = {path if path in always else path.rsplit("/", 1)[0] for path in recipe.files}
    assert edited == always
    assert not recipe.files & at_times


def test_a_target_is_one_folder() -> None:
    assert {path.split("/")[0] for path in TARGET.files} == {"outside_npu"}


@pytest.mark.parametrize("recipe", RECIPES, ids=by_heading)
def test_the_change_works(recipe: Recipe, tmp_path: Path) -> None:
    tree = changed(copied(tmp_path / "tree"), recipe)
    assert run(tree, str(CHECKS / recipe.check)).splitlines()[-1] == "as wanted"
    run_tests(tree, recipe.tests)


@pytest.mark.parametrize("recipe", [OPERATOR, ALU, ROUNDING], ids=by_heading)
def test_without_the_change_the_check_fails(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="Error"):
        run(copied(tmp_path / "tree"), str(CHECKS / recipe.check))


@pytest.mark.long
def test_the_operation_of_the_alu_works_in_verilog(tmp_path: Path) -> None:
    tree = changed(copied(tmp_path / "tree"), ALU)
    assert run(tree, str(CHECKS / "alu_sub_rtl.py")).splitlines()[-1] == "as wanted"
    run(tree, "scripts/lint_rtl.py", "tiny")


@pytest.mark.long
def test_a_rounding_without_its_case_fails_the_type_checker(tmp_path: Path) -> None:
    tree = copied(tmp_path / "tree")
    for edit in ROUNDING.edits:
        if edit.path.endswith("choices.py"):
            edit.apply(tree)
    with pytest.raises(AssertionError, match=r"number\.py:\d+:\d+ - error: .*CEILING.* cannot be assigned"):
        run(tree, "-m", "basedpyright", "--level", "error", "relay_hw/quantize/number.py")
