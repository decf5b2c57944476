"""Bank machines that know row hits ahead against LiteDRAM's own, side by side."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from relay_hw.accel.fpga.row_hits import know_row_hits

migen = pytest.importorskip("migen")
bankmachine = pytest.importorskip("litedram.core.bankmachine")

# As many as five refreshes, each of them with another load before it.
CYCLES = 2000
# What a command says; its address counts where there is one.
SAYS = ("valid", "cas", "ras", "we", "is_cmd", "is_read", "is_write")


def machine() -> Any:
    """A bank machine for the ULX3S' chip."""
    common, modules = pytest.importorskip("litedram.common"), pytest.importorskip("litedram.modules")
    settings = pytest.importorskip("litedram.core.controller").ControllerSettings()
    chip = modules.MT48LC16M16(80e6, "1:1")
    settings.geom, settings.timing = chip.geom_settings, chip.timing_settings
    settings.phy = common.PhySettings("pins", "SDR", 16, 16, 1, 0, 0, 2, 5, cwl=0, write_latency=1)
    return bankmachine.BankMachine(1, 22, 0, 1, settings)


@pytest.mark.parametrize("rows", (1, 2, 5))
def test_it_says_what_litedrams_own_says(rows: int) -> None:
    ours, theirs = machine(), machine()
    know_row_hits(ours)
    both = migen.Module()
    both.submodules += ours, theirs
    chosen = random.Random(rows)
    kinds: set[tuple[int, ...]] = set()

    def drive() -> Iterator[Any]:
        busy = 1.0
        for cycle in range(CYCLES):
            busy = chosen.choice((0.1, 0.5, 1.0)) if cycle % 100 == 0 else busy
            address = chosen.randrange(rows) << 9 | chosen.randrange(512)
            request, ready = chosen.random() < busy, chosen.random() < 0.7
            refresh = cycle % 400 > 385
            for bank in (ours, theirs):
                yield bank.req.valid.eq(request)
                yield bank.req.we.eq(cycle >> 4 & 1)
                yield bank.req.addr.eq(address)
                yield bank.cmd.ready.eq(ready)
                yield bank.refresh_req.eq(refresh)
            yield
            said = []
            for bank in (ours, theirs):
                values = []
                for name in SAYS:
                    values.append((yield getattr(bank.cmd, name)))
                for signal in (bank.req.ready, bank.req.wdata_ready, bank.req.rdata_valid, bank.refresh_gnt):
                    values.append((yield signal))
                values.append((yield bank.cmd.a) if values[0] else None)
                said.append(tuple(values))
            assert said[0] == said[1], cycle
            kinds.add(said[0][:7])

    migen.run_simulation(both, drive())
    # Reads, writes, activations and, with more than one row, precharges were among them.
    assert len(kinds) >= (4 if rows == 1 else 5), kinds


def test_another_machine_is_refused() -> None:
    bank = machine()
    know_row_hits(bank)
    with pytest.raises(ValueError, match="once for hits and once to close them early, not 1 and 0 times"):
        know_row_hits(bank)
