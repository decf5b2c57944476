"""What is read out of nextpnr's report."""

from __future__ import annotations

from typing import Any

from relay_hw.accel.fpga.report import module_of, read_timing, worst


def _end(cell: str, port: str, delay: float, event: str = "posedge $glbnet$eth") -> dict[str, Any]:
    return {"cell": cell, "port": port, "delay": [0.1, delay], "event": event}


def _step(kind: str, delay: float, cell: str) -> dict[str, Any]:
    return {"type": kind, "delay": delay, "to": {"cell": cell}}


REPORT: dict[str, Any] = {
    "fmax": {
        "$glbnet$clk_i$TRELLIS_IO_IN": {"achieved": 80.123, "constraint": 60.0},
        "$glbnet$eth": {"achieved": 120.0, "constraint": 125.0},
    },
    "utilization": {"TRELLIS_FF": {"used": 7, "available": 10}, "DP16KD": {"used": 0, "available": 10}},
    "critical_paths": [
        {"from": "posedge clk_i", "to": "posedge other", "path": [_step("clk-to-q", 9, "x.y")]},
        {
            "from": "posedge $glbnet$eth",
            "to": "posedge $glbnet$eth",
            "path": [
                _step("clk-to-q", 0.5, "u_a.u_b.count_q_TRELLIS_FF_Q"),
                _step("routing", 1.25, "u_a.u_c.sum_LUT4_Z"),
                _step("logic", 0.25, "u_a.u_c.sum_LUT4_Z"),
                _step("setup", 0.0, "u_a.u_b.other_q"),
            ],
        },
    ],
    "detailed_net_timings": [
        {"endpoints": [_end("u_a.g_lane[3].result$TRELLIS_FF$7", "DI", 8.0), _end("u_a.q$TRELLIS_FF$1", "M", 6.3)]},
        {"endpoints": [_end("u_a.g_lane[12].result$TRELLIS_FF$9", "DI", 7.5), _end("x", "DI", 99.0, "posedge other")]},
        {"endpoints": [_end("u_m.mem_q.0.17", "ADA12", 7.0), _end("u_m.mem_q.0.2", "ADA3", 7.25)]},
        {"endpoints": [_end("u_m.mem_q.0.2", "ADA3", 7.0), _end("u_m.mem_q.0.2", "DIA3", 7.0)]},
    ],
}


def test_clocks_modules_and_cells() -> None:
    timing = read_timing(REPORT)
    assert timing.clocks == {"clk_i": (80.12, 60.0), "eth": (120.0, 125.0)}
    assert timing.path == (
        "0.50 ns u_a.u_b.count_q_TRELLIS_FF_Q",
        "1.50 ns u_a.u_c.sum_LUT4_Z",
        "0.00 ns u_a.u_b.other_q",
    )
    assert timing.modules == {"u_a.u_b": 0.5, "u_a.u_c": 1.5}
    assert timing.used == {"TRELLIS_FF": 7}
    assert worst(timing) == 0.96


def test_late_signals_are_grouped_by_what_they_end_at() -> None:
    assert read_timing(REPORT).late == {
        "u_a.g_lane[*].result DI": (8.0, 2),
        "u_m.mem_q.*.* ADA": (7.25, 2),
        "u_m.mem_q.*.* DIA": (7.0, 1),
    }


def test_cells_of_the_top() -> None:
    assert module_of("reset_q_TRELLIS_FF_Q") == "top"
    assert module_of("u_core.u_exec.g_dot[3].u_dot.sum_q$TRELLIS") == "u_core.u_exec.g_dot[3].u_dot"
