"""Runs the regions of a build on a device: keeps track of the loaded program and of resident weights.

In: programs, their ports, a device. Out: a `Session`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

import numpy as np

from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.sim.device import Device, Job, LaunchStats, run_jobs
from relay_hw.target.accel.devices import close_device
from relay_hw.target.accel.residency import Footprints, Holding
from relay_hw.target.accel.steady import Steady, steady
from relay_hw.target.base import Answer
from relay_hw.target.records import RegionInfo
from relay_hw.tensorize.layout import image_bytes, image_of, pack_activation, unpack_activation


class AccelSession:
    """See `Session`. The device must be used by this session alone."""

    def __init__(self, regions: Sequence[RegionInfo], programs: Mapping[str, Program], device: Device) -> None:
        """Raises ProgramError for a device of another configuration."""
        for program in programs.values():
            program.check_config(device.config)
        self._regions = {row.name: row for row in regions}
        self._programs = programs
        self._device = device
        self._loaded: Program | None = None
        self._footprints = Footprints(device.config)
        self._holding = Holding(self._footprints)
        # Regions whose resident constants were loaded before, and the steady states of orders of calls.
        self._settled: set[str] = set()
        self._steady: dict[tuple[str, ...], Steady] = {}

    def settle(self, region: str) -> LaunchStats | None:
        """Load the region's program unless it is loaded; returns the launch that loaded resident weights, if any."""
        program = self._programs[region]
        if self._loaded is program:
            return None
        self._device.load(program)
        self._loaded = None
        needed = self._holding.needs(program)
        self._holding.take(program)
        stats = self._device.launch(SectionKind.RESIDENT) if needed else None
        self._holding.hold(program)
        self._loaded = program
        return stats

    def run(self, region: str, samples: Iterable[Sequence[np.ndarray]]) -> Generator[Answer, None, None]:
        """Run the region on samples: the value of each, and its launch."""
        config = self._device.config
        row, program = self._regions[region], self._programs[region]
        assert self._loaded is program, "settle comes first"
        slots = [program.tensor(port.tensor) for port in row.inputs]
        begins = [program.tensor_offset(slot.name) for slot in slots]
        reads = tuple(
            (program.tensor_offset(port.tensor), image_bytes(image_of(port.shape), config)) for port in row.outputs
        )

        def jobs() -> Iterator[Job]:
            for args in samples:
                packed = [pack_activation(v, config, s.layout) for v, s in zip(args, slots, strict=True)]
                writes = ((begin, data.view(np.uint8)) for begin, data in zip(begins, packed, strict=True))
                yield Job(tuple(writes), reads)

        for done in run_jobs(self._device, jobs()):
            parts = zip(done.found, row.outputs, strict=True)
            outputs = tuple(unpack_activation(data, port.shape, config) for data, port in parts)
            yield (outputs[0] if len(outputs) == 1 else outputs), done.stats

    def repeats(self, calls: Sequence[str], loads: Mapping[int, str]) -> frozenset[int]:
        """Loads of resident constants that repeat in every inference.

        Once come those that the same calls, repeated, would not need, where nothing was loaded for the region before.
        """
        if not loads:
            return frozenset()
        order = tuple(calls)
        if order not in self._steady:
            self._steady[order] = steady(self._footprints, self._programs, order)
        again = self._steady[order].reloads
        found = frozenset(at for at, name in loads.items() if again[at] or name in self._settled)
        self._settled.update(loads.values())
        return found

    def close(self) -> None:
        """Close the device."""
        close_device(self._device)
