"""A second reader of VTA's rules, which shares nothing with the product: bits by hand, one field after the other.

In: two 64-bit words, the bits of an index of each buffer. Out: a dictionary of fields.
"""

from __future__ import annotations

NAMES = {0: "LOAD", 1: "STORE", 2: "GEMM", 3: "FINISH", 4: "ALU"}


class Bits:
    """Takes fields off one word, lowest bits first."""

    def __init__(self, word: int) -> None:
        self.text = f"{word:064b}"

    def take(self, count: int) -> int:
        head, self.text = self.text[len(self.text) - count :], self.text[: len(self.text) - count]
        return int(head, 2)


def read(low: int, high: int, uop: int, inp: int, wgt: int, acc: int) -> dict[str, int | str]:
    """The fields of an instruction. `uop`, `inp`, `wgt`, `acc`: bits of an index into each buffer."""
    a, b = Bits(low), Bits(high)
    found: dict[str, int | str] = {"op": NAMES[a.take(3)]}
    for flag in ("pop_prev", "pop_next", "push_prev", "push_next"):
        found[flag] = a.take(1)
    if found["op"] in ("LOAD", "STORE"):
        found["memory_type"], found["sram_base"], found["dram_base"] = a.take(3), a.take(16), a.take(32)
        found["y_size"], found["x_size"], found["x_stride"] = b.take(16), b.take(16), b.take(16)
        for pad in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"):
            found[pad] = b.take(4)
    elif found["op"] in ("GEMM", "ALU"):
        found["reset"], found["uop_bgn"], found["uop_end"] = a.take(1), a.take(uop), a.take(uop + 1)
        found["iter_out"], found["iter_in"] = a.take(14), a.take(14)
        found["dst_factor_out"], found["dst_factor_in"] = b.take(acc), b.take(acc)
        found["src_factor_out"], found["src_factor_in"] = b.take(inp), b.take(inp)
        if found["op"] == "GEMM":
            found["wgt_factor_out"], found["wgt_factor_in"] = b.take(wgt), b.take(wgt)
        else:
            found["alu_opcode"], found["use_imm"] = b.take(3), b.take(1)
            value = b.take(16)
            found["imm"] = value - 65536 if value > 32767 else value
    return found
