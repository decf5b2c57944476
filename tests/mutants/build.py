"""Chooses mutants of the Verilog and builds one model that holds all of them, of which a run switches one on.

In: a configuration. Out: mutants with numbers, a library in the user's cache folder, and which of the mutants are in
logic that the configuration has.
"""

from __future__ import annotations

import copy
import hashlib
import random
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from pyverilog.vparser import ast

from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.sim.result_cache import kept
from relay_hw.accel.sim.verilator import (
    RTL_DIR,
    Build,
    Form,
    Start,
    find_toolchain,
    rtl_files,
    user_cache_folder,
    verilate,
)
from tests.accel.rtl.syntax import module_of, verilog
from tests.mutants.operators import CHOICE, MAGIC, Operator, Site, Subject, sites

TOP = "vta_top"
# Sources without a site are copied as they are.
INCLUDE = '`include "vta_isa.vh"\n'
HEAD = "`resetall\n`timescale 1ns / 1ps\n`default_nettype none\n"
# As the sources end: without it yosys takes a memory in a block for an implicit net, and refuses it.
TAIL = "`resetall\n"
# The number of the mutant that is on comes from the command line: none without it.
CHOOSER = f"""  reg [31:0] {CHOICE}_q;
  initial begin
    {CHOICE}_q = 32'd0;
    if (!$value$plusargs("mutant=%d", {CHOICE}_q)) {CHOICE}_q = 32'd0;
    {CHOICE}_q = {CHOICE}_q + 32'h{MAGIC:08x};
  end
"""
READER = f"  wire [31:0] {CHOICE} = {TOP}.{CHOICE}_q;\n"


@dataclass(frozen=True, slots=True)
class Shape:
    """A configuration, the products of its array that are multipliers, and how many mutants it is given.

    `modules`: those that mutants may be in; none named is all.
    """

    config: AccelConfig
    mutants: int
    dsp_products: int | None = None
    modules: tuple[str, ...] = ()

    def build(self, rtl: Path) -> Build:
        """How its model is built of sources in `rtl`."""
        build = replace(Build.of(self.config, rtl=rtl, form=Form.FABRIC), start=Start.DRAWN)
        if self.dsp_products is None:
            return build
        parameters = dict(build.parameters) | {"DSP_PRODUCTS": self.dsp_products}
        return replace(build, parameters=tuple(sorted(parameters.items())))


TINY = load_config("tiny")
# Numbers of each shape.
ROOM = 1000
SHAPES = {
    "tiny": Shape(TINY, 420),
    "half": Shape(replace(TINY, name="half", block_in=32, wgt_bits=4, out_lanes=2), 110),
    "luts": Shape(replace(TINY, name="luts", block_in=8), 110, dsp_products=4),
}
# What the ordinary tests run: built and read in seconds, and of none of the above.
SAMPLE = "sample"
SHAPES_AND_SAMPLE = {**SHAPES, SAMPLE: Shape(TINY, 40, modules=("vta_count", "vta_sems", "vta_fault", "vta_csr"))}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A site with its number, which is unique among all shapes, and the shape in which it lives."""

    number: int
    shape: str
    site: Site

    def __str__(self) -> str:
        return f"{self.site.key} [{self.shape}]"


@cache
def sources() -> dict[str, Path]:
    """File of each module that is synthesised."""
    return {path.stem: path for path in rtl_files()}


@cache
def inputs(name: str) -> frozenset[str]:
    """Input ports of a module."""
    ports = module_of(sources()[name]).portlist.ports
    return frozenset(port.first.name for port in ports if isinstance(port.first, ast.Input))


def sites_of(name: str) -> tuple[ast.ModuleDef, list[Site]]:
    """A fresh copy of a module's tree with its sites. Of sites that read alike only the first counts."""
    tree = copy.deepcopy(module_of(sources()[name]))
    unique = {site.key: site for site in reversed(sites(tree, inputs))}
    return tree, list(reversed(unique.values()))


def spread(found: Sequence[Site], rng: random.Random) -> Iterator[Site]:
    """Sites in an order in which operators take turns; names of faults and IDs come first of each."""
    groups = []
    for operator in Operator:
        group = [site for site in found if site.operator is operator]
        rng.shuffle(group)
        groups.append(sorted(group, key=lambda site: site.subject is Subject.OTHER))
    turns = chain.from_iterable(zip_longest(*groups))
    return (site for site in turns if site is not None)


def share_out(shape: Shape) -> dict[str, int]:
    """Mutants of each module in proportion to its lines, at least one."""
    names = shape.modules or tuple(sources())
    lines = {name: len(sources()[name].read_text().splitlines()) for name in names}
    whole = sum(lines.values())
    return {name: max(1, round(shape.mutants * count / whole)) for name, count in lines.items()}


@cache
def _offered(shape: str, seed: int) -> frozenset[str]:
    return frozenset(site.key for _, picked in _picked(shape, seed).values() for site in picked.values())


@cache
def chosen(shape: str, seed: int) -> tuple[tuple[Mutant, ...], Path]:
    """The mutants of a shape that are in logic which it has, and the folder of the sources that hold them.

    Raises ToolError.
    """
    every = _picked(shape, seed)
    folder = write(shape, every)
    alive = living(SHAPES_AND_SAMPLE[shape].build(folder))
    mutants = tuple(Mutant(n, shape, site) for _, picked in every.values() for n, site in picked.items() if n in alive)
    return mutants, folder


@cache
def _picked(shape: str, seed: int) -> dict[str, tuple[ast.ModuleDef, dict[int, Site]]]:
    """Trees of all modules, and the sites of a shape in them, by number.

    What an earlier shape was given and does not have is tried first, what it has is left to it.
    """
    earlier = list(SHAPES)[: list(SHAPES).index(shape)] if shape in SHAPES else []
    owned = {mutant.site.key for name in earlier for mutant in chosen(name, seed)[0]}
    tried = {key for name in earlier for key in _offered(name, seed)} - owned
    first = 1 + ROOM * len(earlier)
    every: dict[str, tuple[ast.ModuleDef, dict[int, Site]]] = {}
    number = first
    for name, share in share_out(SHAPES_AND_SAMPLE[shape]).items():
        tree, found = sites_of(name)
        order = [site for site in spread(found, random.Random(f"{seed}/{name}")) if site.key not in owned]
        order.sort(key=lambda site: site.key not in tried)
        picked = order[: max(share, sum(site.key in tried for site in order))]
        every[name] = tree, dict(enumerate(picked, number))
        number += len(picked)
    assert number - first <= ROOM
    return every


def write(shape: str, every: dict[str, tuple[ast.ModuleDef, dict[int, Site]]]) -> Path:
    """A folder with the sources, their chosen sites as switches, in the user's cache."""
    texts = {}
    for name, path in sources().items():
        if name not in every:
            texts[name] = path.read_text()
            continue
        tree, picked = every[name]
        for number, site in picked.items():
            site.switch(number)
        texts[name] = with_declarations(module_text(tree), READER)
    texts[TOP] = with_declarations(texts[TOP], CHOOSER)
    key = hashlib.sha256("".join(texts.values()).encode()).hexdigest()[:24]

    def make(work: Path) -> None:
        for name, text in texts.items():
            (work / f"{name}.v").write_text(text)
        (work / "gen").mkdir()
        shutil.copyfile(RTL_DIR / "gen" / "vta_isa.vh", work / "gen" / "vta_isa.vh")
        (work / "filelist.f").write_text("".join(f"{path.stem}.v\n" for path in rtl_files()))

    return kept(user_cache_folder() / "mutants", f"{shape}-{key}", make)


def module_text(tree: ast.ModuleDef) -> str:
    """A module's tree as a file."""
    return f"{HEAD}{verilog(tree)}\n{TAIL}"


def with_declarations(text: str, declarations: str) -> str:
    """A module's text with declarations behind its ports."""
    begin = text.index("\n);") + len("\n);")
    return f"{text[:begin]}\n{declarations}{text[begin:]}"


def living(build: Build) -> frozenset[int]:
    """Numbers of the mutants that Verilator finds in the logic: the others are where this configuration has none."""
    with TemporaryDirectory() as folder:
        verilate(build, find_toolchain(), Path(folder))
        text = "".join(path.read_text() for path in Path(folder).glob("*.cpp"))
    return frozenset(int(found, 16) - MAGIC for found in re.findall(rf"0x({MAGIC >> 16:x}[0-9a-f]{{4}})", text))
