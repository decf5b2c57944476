"""SUB of the ALU in Verilog: the benches that read the rows of operations, and the program of `alu_sub.py`."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from alu_sub import check

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim.bench.runner import run_bench
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.accel.sim.rtl_device import RtlDevice, Sources
from relay_hw.accel.sim.verilator import Form

UPDATE = {"BLOCK_OUT": 4, "OUT_LANES": 2, "SUM_W": 18}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        run_bench("vta_alu_lane", "bench_alu_lane", {}, root)
        run_bench("vta_decode", "bench_decode", {}, root)
        run_bench("vta_update", "bench_update", UPDATE, root)
        run_bench("vta_update", "bench_update", UPDATE, root, Sources(form=Form.FAST))
    check(RtlDevice(load_config("tiny"), memory_model("standard")))
    sys.stdout.write("as wanted\n")
