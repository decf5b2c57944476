"""Verilog that holds each model of an ECP5 cell beside the form that synthesis takes it from.

In: nothing. Out: the module `cells_top`: random bits in, a bit that says `wrong` for each check.
"""

from __future__ import annotations

from dataclasses import dataclass, field

RANDOM_BITS = 2048
LUT6 = 0x9C3A_51E7_0B84_D2F6


@dataclass(slots=True)
class Top:
    """Text in the making. `take`: the next random bits, as an expression."""

    body: list[str] = field(default_factory=list[str])
    checks: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    used: int = 0

    def take(self, bits: int = 1) -> str:
        begin, self.used = self.used, self.used + bits
        assert self.used <= RANDOM_BITS
        return f"r[{begin}]" if bits == 1 else f"r[{begin}+:{bits}]"

    def check(self, name: str, text: str, wrong: str) -> None:
        self.body.append(f"  // {name}\n{text}")
        self.checks.append((name, wrong))

    def text(self) -> str:
        ends = "\n".join(f"  assign wrong[{k}] = {wrong};" for k, (_, wrong) in enumerate(self.checks))
        head = f"module cells_top(input wire clk_i, input wire [{RANDOM_BITS - 1}:0] r, "
        return (
            f"{head}output wire [{len(self.checks) - 1}:0] wrong);\n" + "\n".join(self.body) + f"\n{ends}\nendmodule\n"
        )


def cells_top() -> Top:
    top = Top()
    _luts(top)
    _sums(top)
    _flip_flops(top)
    _small_memory(top)
    _multipliers(top)
    _block_rams(top)
    return top


def _luts(top: Top) -> None:
    for name, init, form in (
        ("and", 0x8000, "&{in}"),
        ("xor", 0x6996, "^{in}"),
        ("mux", 0xCACA, "{in}[2] ? {in}[1] : {in}[0]"),
    ):
        bits = f"lut_{name}"
        pins = ", ".join(f".{pin}({bits}[{k}])" for k, pin in enumerate("ABCD"))
        text = f"  wire [3:0] {bits} = {top.take(4)};\n  wire {bits}_z;\n"
        text += f"  LUT4 #(.INIT(16'h{init:04x})) u_{bits} ({pins}, .Z({bits}_z));"
        top.check(f"LUT4 {name}", text, f"{bits}_z != ({form.replace('{in}', bits)})")
    text = f"  wire [5:0] six = {top.take(6)};\n  wire [3:0] four;\n  wire [1:0] five;\n  wire six_z;\n"
    text += f"  wire [63:0] six_k = 64'h{LUT6:016x};\n"
    for k in range(4):
        pins = ", ".join(f".{pin}(six[{n}])" for n, pin in enumerate("ABCD"))
        text += f"  LUT4 #(.INIT(16'h{LUT6 >> 16 * k & 0xFFFF:04x})) u_four{k} ({pins}, .Z(four[{k}]));\n"
    for k in range(2):
        text += f"  PFUMX u_five{k} (.ALUT(four[{2 * k + 1}]), .BLUT(four[{2 * k}]), .C0(six[4]), .Z(five[{k}]));\n"
    text += "  L6MUX21 u_six (.D0(five[0]), .D1(five[1]), .SD(six[5]), .Z(six_z));"
    top.check("LUT of six inputs", text, "six_z != six_k[six]")


def _sums(top: Top) -> None:
    text = f"  wire [7:0] sum_a = {top.take(8)}, sum_b = {top.take(8)};\n"
    text += f"  wire sum_i = {top.take()}, sum_c = {top.take()};\n"
    text += "  wire [7:0] sum_s;\n  wire [4:0] sum_k;\n  assign sum_k[0] = sum_c;\n"
    text += "  wire [8:0] sum_want = sum_a + (sum_b ^ {8{sum_i}}) + {8'd0, sum_c};\n"
    for k in range(4):
        bits = [(n, 2 * k + n) for n in range(2)]
        pins = ", ".join(f".A{n}(sum_a[{m}]), .B{n}(sum_b[{m}]), .S{n}(sum_s[{m}])" for n, m in bits)
        pins += ", .C0(sum_i), .D0(1'b1), .C1(sum_i), .D1(1'b1)"
        kind = '.INIT0(16\'h96aa), .INIT1(16\'h96aa), .INJECT1_0("NO"), .INJECT1_1("NO")'
        text += f"  CCU2C #({kind}) u_sum{k} (.CIN(sum_k[{k}]), {pins}, .COUT(sum_k[{k + 1}]));\n"
    top.check("CCU2C sums and differences", text, "{sum_k[4], sum_s} != sum_want")
    text = f"  wire [3:0] alone = {top.take(4)};\n  wire alone_c = {top.take()};\n  wire alone_s0, alone_s1, alone_k;\n"
    pins = ", ".join(f".{pin}{n}(alone[{k}])" for n in range(2) for k, pin in enumerate("ABCD"))
    text += (
        f"  CCU2C #(.INIT0(16'h8000), .INIT1(16'h6996)) u_alone (.CIN(alone_c), {pins}, .S0(alone_s0), .S1(alone_s1), "
    )
    text += ".COUT(alone_k));"
    want = "{&alone, ^alone, &alone && ^alone && alone_c}"
    top.check("CCU2C without carries", text, f"{{alone_s0, alone_s1, alone_k}} != {want}")


def _flip_flops(top: Top) -> None:
    kinds = (
        ("1", "CLK", "LSR", "LSR_OVER_CE", "RESET"),
        ("CE", "CLK", "LSR", "LSR_OVER_CE", "RESET"),
        ("CE", "CLK", "LSR", "LSR_OVER_CE", "SET"),
        ("INV", "CLK", "INV", "LSR_OVER_CE", "SET"),
        ("CE", "CLK", "LSR", "CE_OVER_LSR", "RESET"),
        ("CE", "CLK", "LSR", "ASYNC", "RESET"),
        ("1", "CLK", "INV", "ASYNC", "SET"),
        ("0", "CLK", "LSR", "LSR_OVER_CE", "SET"),
    )
    for k, (ce, clk, lsr, mode, value) in enumerate(kinds):
        name = f"ff{k}"
        sizes = f'.CEMUX("{ce}"), .CLKMUX("{clk}"), .LSRMUX("{lsr}"), .SRMODE("{mode}"), .REGSET("{value}")'
        bit = int(value == "SET")
        # Resets are rare, so that values stay a while.
        text = f"  wire {name}_d = {top.take()}, {name}_e = {top.take()};\n"
        text += f"  wire {name}_r = &{top.take(3)} ^ {int(lsr == 'INV')};\n"
        text += f"  wire {name}_q;\n  TRELLIS_FF #({sizes}) u_{name} (.CLK(clk_i), .LSR({name}_r), .CE({name}_e), "
        text += f".DI({name}_d), .M(1'b0), .Q({name}_q));\n  reg {name}_want = {bit};\n"
        reset = f"!{name}_r" if lsr == "INV" else f"{name}_r"
        enable = {"1": "1'b1", "0": "1'b0", "CE": f"{name}_e", "INV": f"!{name}_e"}[ce]
        if mode == "CE_OVER_LSR":
            text += f"  always @(posedge clk_i) if ({enable}) {name}_want <= {reset} ? {bit} : {name}_d;"
        else:
            edges = "posedge clk_i" if mode != "ASYNC" else f"posedge clk_i or posedge {name}_reset"
            text += (
                f"  wire {name}_reset = {reset};\n  always @({edges})\n    if ({name}_reset) {name}_want <= {bit};\n"
            )
            text += f"    else if ({enable}) {name}_want <= {name}_d;"
        top.check(f"TRELLIS_FF {ce} {lsr} {mode} {value}", text, f"{name}_q != {name}_want")


def _small_memory(top: Top) -> None:
    text = f"  wire [3:0] small_d = {top.take(4)}, small_w = {top.take(4)}, small_r = {top.take(4)}, small_q;\n"
    text += f"  wire small_e = {top.take()};\n  reg [3:0] dpr[0:15];\n  integer small_n;\n"
    text += "  initial for (small_n = 0; small_n < 16; small_n = small_n + 1) dpr[small_n] = small_n;\n"
    init = sum(k << 4 * k for k in range(16))
    text += f"  TRELLIS_DPR16X4 #(.INITVAL(64'h{init:016x})) u_small (.DI(small_d), .WAD(small_w), .WRE(small_e), "
    text += (
        ".WCK(clk_i), .RAD(small_r), .DO(small_q));\n  always @(posedge clk_i) if (small_e) dpr[small_w] <= small_d;"
    )
    top.check("TRELLIS_DPR16X4", text, "small_q != dpr[small_r]")


def _bus(pin: str, bits: int, value: str) -> str:
    return ", ".join(f".{pin}{k}({value}[{k}])" for k in range(bits))


def _multipliers(top: Top) -> None:
    for left, right in ((0, 0), (1, 1), (1, 0), (0, 1)):
        for stages in ((), ("OUTPUT",), ("INPUTA", "INPUTB", "PIPELINE", "OUTPUT")):
            name = f"mul{left}{right}_{len(stages)}"
            text = f"  wire [17:0] {name}_a = {top.take(18)}, {name}_b = {top.take(18)};\n  wire [35:0] {name}_p;\n"
            text += f"  wire {name}_e = |{top.take(2)}, {name}_r = &{top.take(4)};\n"
            sizes = ", ".join(
                f'.REG_{stage}_CLK("CLK1"), .REG_{stage}_CE("CE2"), .REG_{stage}_RST("RST3")' for stage in stages
            )
            pins = f"{_bus('A', 18, f'{name}_a')}, {_bus('B', 18, f'{name}_b')}, {_bus('P', 36, f'{name}_p')}"
            text += (
                f"  MULT18X18D #({sizes}) u_{name} ({pins}, .SIGNEDA(1'b{left}), .SIGNEDB(1'b{right}), .SOURCEA(1'b0), "
            )
            text += f".SOURCEB(1'b0), .CLK1(clk_i), .CE2({name}_e), .RST3({name}_r));\n"
            text += _product(name, left, right, stages)
            top.check(f"MULT18X18D signed {left}{right}, {len(stages)} registers", text, f"{name}_p != {name}_want")


def _product(name: str, left: int, right: int, stages: tuple[str, ...]) -> str:
    """The product as it is written by hand, with registers where the multiplier has them."""
    value = {"a": f"{name}_a", "b": f"{name}_b"}
    text = ""
    block = ""
    if "INPUTA" in stages:
        text += f"  reg [17:0] {name}_aq = 0, {name}_bq = 0;\n"
        block += f"{name}_aq <= {name}_r ? 0 : {name}_a; {name}_bq <= {name}_r ? 0 : {name}_b; "
        value = {"a": f"{name}_aq", "b": f"{name}_bq"}
    wide = {
        key: f"{{{{18{{{value[key]}[17]}}}}, {value[key]}}}" if sign else f"{{18'd0, {value[key]}}}"
        for key, sign in (("a", left), ("b", right))
    }
    text += f"  wire [35:0] {name}_full = {wide['a']} * {wide['b']};\n"
    last = f"{name}_full"
    for stage in stages:
        if stage in ("PIPELINE", "OUTPUT"):
            text += f"  reg [35:0] {name}_{stage} = 0;\n"
            block += f"{name}_{stage} <= {name}_r ? 0 : {last}; "
            last = f"{name}_{stage}"
    if block:
        text += f"  always @(posedge clk_i) if ({name}_e || {name}_r) begin {block}end\n"
    return text + f"  wire [35:0] {name}_want = {last};"


def _block_ram(name: str, width_a: int, width_b: int, mode: str, more: str = "") -> str:
    sizes = f'.DATA_WIDTH_A({width_a}), .DATA_WIDTH_B({width_b}), .WRITEMODE_A("{mode}"), .WRITEMODE_B("{mode}"){more}'
    pins: list[str] = []
    for port in "AB":
        low = f"{name}_{port.lower()}"
        pins += [f".CLK{port}(clk_i), .WE{port}({low}_w), .CE{port}({low}_e), .RST{port}({low}_r), .OCE{port}(1'b1)"]
        pins += [f".CS{port}{k}(1'b0)" for k in range(3)]
        pins += [
            _bus(f"AD{port}", 14, f"{low}_at"),
            _bus(f"DI{port}", 18, f"{low}_d"),
            _bus(f"DO{port}", 18, f"{low}_q"),
        ]
    return f"  DP16KD #({sizes}) u_{name} ({', '.join(pins)});\n"


def _port(top: Top, low: str, at: str) -> str:
    text = f"  wire {low}_w = {top.take()}, {low}_e = |{top.take(2)}, {low}_r = &{top.take(4)};\n"
    return text + f"  wire [13:0] {low}_at = {at};\n  wire [17:0] {low}_d = {top.take(18)}, {low}_q;\n"


def _block_rams(top: Top) -> None:
    for width in (1, 2, 4, 9, 18):
        for mode in ("NORMAL", "WRITETHROUGH", "READBEFOREWRITE"):
            _two_ports(top, width, mode)
    for width in (36, 18, 9, 4):
        _writer_and_reader(top, width)
    _collision(top)


def _two_ports(top: Top, width: int, mode: str) -> None:
    """Ports of one width; they keep to different halves at an edge, and few words, so that they meet later."""
    name = f"ram{width}_{mode.lower()}"
    half = top.take()
    # Words: low bits, and the top one apart; of 18 bits, the two low bits of the address are enables.
    shift = {1: 0, 2: 1, 4: 2, 9: 3, 18: 4}[width]
    text = ""
    for port, which in (("a", half), ("b", f"!{half}")):
        low, word = f"{name}_{port}", top.take(4)
        enables = top.take(2) if width == 18 else "2'd0"
        at = f"{{{which}, 13'd0}} | {{10'd0, {word}}} << {shift} | {{12'd0, {enables}}}"
        text += _port(top, low, at)
        text += f"  wire [1:0] {low}_be = {enables if width == 18 else chr(39).join(('2', 'b11'))};\n"
        text += f"  reg [{width - 1}:0] {low}_want = 0;\n"
    text += _block_ram(name, width, width, mode)
    text += f"  reg [{width - 1}:0] {name}[0:{(1 << 14 - shift) - 1}];\n  integer {name}_n;\n"
    text += (
        f"  initial for ({name}_n = 0; {name}_n < {1 << 14 - shift}; {name}_n = {name}_n + 1) {name}[{name}_n] = 0;\n"
    )
    for port in "ab":
        low = f"{name}_{port}"
        row = f"{name}[{low}_at[13:{shift}]]"
        mask = f"{{{{9{{{low}_be[1]}}}}, {{9{{{low}_be[0]}}}}}}" if width == 18 else f"{{{width}{{1'b1}}}}"
        new = f"({row} & ~{mask} | {low}_d[{width - 1}:0] & {mask})"
        shown = {"NORMAL": f"{low}_want", "WRITETHROUGH": new, "READBEFOREWRITE": row}[mode]
        text += f"  always @(posedge clk_i) begin\n    if ({low}_r) {low}_want <= 0;\n"
        text += f"    else if ({low}_e) {low}_want <= {low}_w ? {shown} : {row};\n"
        text += f"    if ({low}_e && {low}_w && !{low}_r) {row} <= {new};\n  end\n"
    wrong = " || ".join(f"{name}_{port}_q[{width - 1}:0] != {name}_{port}_want" for port in "ab")
    top.check(f"DP16KD {width} {mode}", text, wrong)


def _writer_and_reader(top: Top, width: int) -> None:
    """Port A writes words of 36 bits, port B reads `width` of them."""
    name = f"wide{width}"
    shift = {4: 2, 9: 3, 18: 4, 36: 5}[width]
    half, word, enables, part = top.take(), top.take(3), top.take(4), top.take(3)
    text = _port(top, f"{name}_a", f"{{{half}, 13'd0}} | {{11'd0, {word}}} << 5 | {{10'd0, {enables}}}")
    text += _port(
        top, f"{name}_b", f"{{!{half}, 13'd0}} | {{11'd0, {part}}} << {shift} | {{11'd0, {top.take(3)}}} << 5"
    )
    text = text.replace(f"{name}_a_w = {text.split(f'{name}_a_w = ')[1].split(',')[0]},", f"{name}_a_w = 1'b1,")
    text = text.replace(f"{name}_b_w = {text.split(f'{name}_b_w = ')[1].split(',')[0]},", f"{name}_b_w = 1'b0,")
    init = ", .INITVAL_00(320'h3ffff_12345)"
    text += _block_ram(name, 36, width, "NORMAL", init)
    text += f"  reg [35:0] {name}[0:511];\n  integer {name}_n;\n  initial begin\n"
    text += f"    for ({name}_n = 0; {name}_n < 512; {name}_n = {name}_n + 1) {name}[{name}_n] = 0;\n"
    text += f"    {name}[0] = {{18'h3ffff, 18'h12345}};\n  end\n"
    mask = "{" + ", ".join(f"{{9{{{name}_a_at[{k}]}}}}" for k in (3, 2, 1, 0)) + "}"
    row = f"{name}[{name}_a_at[13:5]]"
    data = f"{{{name}_b_d, {name}_a_d}}"
    text += f"  always @(posedge clk_i) if ({name}_a_e && !{name}_a_r) {row} <= {row} & ~{mask} | {data} & {mask};\n"
    text += f"  wire [35:0] {name}_row = {name}[{name}_b_at[13:5]];\n  reg [{width - 1}:0] {name}_want = 0;\n"
    cut = {
        36: f"{name}_row",
        18: f"{name}_row[{name}_b_at[4] * 18+:18]",
        9: f"{name}_row[{name}_b_at[4:3] * 9+:9]",
        4: f"{name}_row[{name}_b_at[4:3] * 9 + {name}_b_at[2] * 4+:4]",
    }[width]
    text += f"  always @(posedge clk_i) if ({name}_b_r) {name}_want <= 0; else if ({name}_b_e) {name}_want <= {cut};\n"
    found = f"{{{name}_b_q, {name}_a_q}}" if width == 36 else f"{name}_b_q[{width - 1}:0]"
    top.check(f"DP16KD 36 to {width}", text, f"{found} != {name}_want")


def _collision(top: Top) -> None:
    """A word that is written and read at one edge is read as garbage, and written well."""
    data = top.take(18)
    text = "  reg clash_go = 0;\n  reg [17:0] clash_old = 0, clash_new = 0;\n"
    for port, write in (("a", "1'b1"), ("b", "1'b0")):
        low = f"clash_{port}"
        text += f"  wire {low}_w = {write}, {low}_e = 1'b1, {low}_r = 1'b0;\n"
        text += f"  wire [13:0] {low}_at = 14'h1233;\n  wire [17:0] {low}_d = {data}, {low}_q;\n"
    text += _block_ram("clash", 18, 18, "READBEFOREWRITE")
    text += f"  always @(posedge clk_i) begin clash_go <= 1; clash_old <= {data}; clash_new <= clash_old; end\n"
    wrong = "clash_go && (clash_a_q != clash_new || clash_b_q != ~clash_new)"
    top.check("DP16KD collision", text, wrong)
