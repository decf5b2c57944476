"""Verilog that holds each model of a Gowin cell beside the form that synthesis takes it from.

In: nothing. Out: the module `cells_top`, as `cells.py` makes it for ECP5.
"""

from __future__ import annotations

from tests.accel.fpga.sim.cells import Top


def gowin_top() -> Top:
    top = Top()
    _luts(top)
    _sums(top)
    _flip_flops(top)
    _small_memory(top)
    _multipliers(top)
    _signed_multiplier(top)
    _writer_and_reader(top)
    for mode in range(3):
        _two_ports(top, mode)
    _collisions(top)
    return top


def _luts(top: Top) -> None:
    for size in range(1, 5):
        init = 0x9C3A & (1 << (1 << size)) - 1
        pins = ", ".join(f".I{k}(lut{size}[{k}])" for k in range(size))
        text = f"  wire [{size - 1}:0] lut{size} = {top.take(size)};\n  wire lut{size}_f;\n"
        text += f"  wire [{(1 << size) - 1}:0] lut{size}_k = {1 << size}'h{init:x};\n"
        text += f"  LUT{size} #(.INIT({1 << size}'h{init:x})) u_lut{size} ({pins}, .F(lut{size}_f));"
        top.check(f"LUT{size}", text, f"lut{size}_f != lut{size}_k[lut{size}]")


def _sums(top: Top) -> None:
    text = f"  wire [7:0] sum_a = {top.take(8)}, sum_b = {top.take(8)}, sum_s;\n"
    text += f"  wire sum_add = {top.take()}, sum_c = {top.take()};\n  wire [8:0] sum_k;\n  assign sum_k[0] = sum_c;\n"
    text += "  wire [8:0] sum_want = sum_a + (sum_b ^ {8{!sum_add}}) + {8'd0, sum_c};\n"
    for k in range(8):
        pins = f".I0(sum_a[{k}]), .I1(sum_b[{k}]), .I3(sum_add), .CIN(sum_k[{k}]), .COUT(sum_k[{k + 1}])"
        text += f"  ALU #(.ALU_MODE(2)) u_sum{k} ({pins}, .SUM(sum_s[{k}]));\n"
    top.check("ALU sums and differences", text, "{sum_k[8], sum_s} != sum_want")


def _flip_flops(top: Top) -> None:
    for kind in ("DFF", "DFFE", "DFFR", "DFFRE", "DFFS", "DFFSE"):
        low, value = kind.lower(), int("S" in kind)
        has_clear, has_enable = kind[3:4] in ("R", "S"), kind.endswith("E")
        clear = "SET" if value else "RESET"
        # Clears are rare, so that values stay a while.
        text = f"  wire {low}_d = {top.take()}, {low}_e = {top.take()}, {low}_c = &{top.take(3)}, {low}_q;\n"
        pins = f".D({low}_d), .CLK(clk_i), .Q({low}_q)" + (f", .CE({low}_e)" if has_enable else "")
        pins += f", .{clear}({low}_c)" if has_clear else ""
        text += f"  {kind} u_{low} ({pins});\n  reg {low}_want = {value};\n  always @(posedge clk_i)\n"
        text += f"    if ({low}_c && {int(has_clear)}) {low}_want <= {value};\n"
        text += f"    else if ({low}_e || {int(not has_enable)}) {low}_want <= {low}_d;"
        top.check(kind, text, f"{low}_q != {low}_want")


def _small_memory(top: Top) -> None:
    text = f"  wire [3:0] small_d = {top.take(4)}, small_w = {top.take(4)}, small_r = {top.take(4)}, small_q;\n"
    text += f"  wire small_e = {top.take()};\n  reg [3:0] words[0:15];\n  integer small_n;\n"
    text += "  initial for (small_n = 0; small_n < 16; small_n = small_n + 1) words[small_n] = small_n;\n"
    inits = ", ".join(f".INIT_{bit}(16'h{sum((k >> bit & 1) << k for k in range(16)):04x})" for bit in range(4))
    text += f"  RAM16SDP4 #({inits}) u_small (.DI(small_d), .WAD(small_w), .WRE(small_e), .CLK(clk_i), .RAD(small_r), "
    text += ".DO(small_q));\n  always @(posedge clk_i) if (small_e) words[small_w] <= small_d;"
    top.check("RAM16SDP4", text, "small_q != words[small_r]")


def _multipliers(top: Top) -> None:
    for bits in (9, 18, 36):
        for left, right in ((0, 0), (1, 1), (1, 0)):
            name = f"mul{bits}_{left}{right}"
            text = f"  wire [{bits - 1}:0] {name}_a = {top.take(bits)}, {name}_b = {top.take(bits)};\n"
            text += f"  wire [{2 * bits - 1}:0] {name}_p;\n"
            chained = f", .ASEL(1'b0), .BSEL(1'b0), .SIA({bits}'d0), .SIB({bits}'d0)" if bits < 36 else ""
            pins = f".A({name}_a), .B({name}_b), .ASIGN(1'b{left}), .BSIGN(1'b{right}), .DOUT({name}_p){chained}"
            text += f"  MULT{bits}X{bits} u_{name} ({pins}, .CLK(1'b0), .CE(1'b0), .RESET(1'b0));\n"
            wide = [
                f"{{{{{bits}{{{name}_{way}[{bits - 1}] && {sign}}}}}, {name}_{way}}}"
                for way, sign in (("a", left), ("b", right))
            ]
            text += f"  wire [{2 * bits - 1}:0] {name}_want = {wide[0]} * {wide[1]};"
            top.check(f"MULT{bits}X{bits} signed {left}{right}", text, f"{name}_p != {name}_want")


def _signed_multiplier(top: Top) -> None:
    text = f"  wire [11:0] mul12_a = {top.take(12)}, mul12_b = {top.take(12)};\n  wire [23:0] mul12_p;\n"
    text += "  MULT12X12 u_mul12 (.A(mul12_a), .B(mul12_b), .DOUT(mul12_p), .CLK(2'd0), .CE(2'd0), .RESET(2'd0));\n"
    text += "  wire [23:0] mul12_want = {{12{mul12_a[11]}}, mul12_a} * {{12{mul12_b[11]}}, mul12_b};"
    top.check("MULT12X12", text, "mul12_p != mul12_want")


def _sdp(name: str) -> str:
    init = "288'hffff_12345"
    pins = f".CLKA(clk_i), .CEA({name}_w), .RESETA(1'b0), .ADA({name}_at), .DI({name}_d), .BLKSELA(3'd0), .CLKB(clk_i)"
    pins += f", .CEB({name}_e), .RESETB({name}_r), .OCE(1'b1), .ADB({name}_from), .BLKSELB(3'd0), .DO({name}_q)"
    return f"  SDPX9B #(.INIT_RAM_00({init})) u_{name} ({pins});\n"


def _writer_and_reader(top: Top) -> None:
    half, word, enables, other = top.take(), top.take(3), top.take(4), top.take(3)
    text = f"  wire sdp_w = {top.take()}, sdp_e = |{top.take(2)}, sdp_r = &{top.take(4)};\n"
    # Halves, so that no word is read that is written at that edge, and few words, so that they meet later.
    text += f"  wire [13:0] sdp_at = {{{half}, 5'd0, {word}, 1'b0, {enables}}};\n"
    text += f"  wire [13:0] sdp_from = {{!{half}, 5'd0, {other}, 5'd0}};\n"
    text += f"  wire [35:0] sdp_d = {top.take(36)}, sdp_q;\n" + _sdp("sdp")
    text += "  reg [35:0] sdp[0:511], sdp_want = 0;\n  integer sdp_n;\n  initial begin\n"
    text += "    for (sdp_n = 0; sdp_n < 512; sdp_n = sdp_n + 1) sdp[sdp_n] = 0;\n"
    text += "    sdp[0] = 36'hffff_12345;\n  end\n"
    text += "  wire [35:0] sdp_m = {{9{sdp_at[3]}}, {9{sdp_at[2]}}, {9{sdp_at[1]}}, {9{sdp_at[0]}}};\n"
    text += "  always @(posedge clk_i) if (sdp_w) sdp[sdp_at[13:5]] <= sdp[sdp_at[13:5]] & ~sdp_m | sdp_d & sdp_m;\n"
    text += "  always @(posedge clk_i) if (sdp_r) sdp_want <= 0; else if (sdp_e) sdp_want <= sdp[sdp_from[13:5]];"
    top.check("SDPX9B", text, "sdp_q != sdp_want")


def _dp(name: str, mode: int) -> str:
    pins: list[str] = []
    for port in "AB":
        low = f"{name}_{port.lower()}"
        pins += [f".CLK{port}(clk_i), .CE{port}({low}_e), .WRE{port}({low}_w), .RESET{port}({low}_r), .OCE{port}(1'b1)"]
        pins += [f".AD{port}({low}_at), .DI{port}({low}_d), .BLKSEL{port}(3'd0), .DO{port}({low}_q)"]
    return f"  DPX9B #(.WRITE_MODE0({mode}), .WRITE_MODE1({mode})) u_{name} ({', '.join(pins)});\n"


def _two_ports(top: Top, mode: int) -> None:
    """Two ports that keep to different halves at an edge."""
    name, half = f"dp{mode}", top.take()
    text = f"  reg [17:0] {name}[0:1023];\n  integer {name}_n;\n"
    text += f"  initial for ({name}_n = 0; {name}_n < 1024; {name}_n = {name}_n + 1) {name}[{name}_n] = 0;\n"
    for port, which in (("a", half), ("b", f"!{half}")):
        low = f"{name}_{port}"
        text += f"  wire {low}_w = {top.take()}, {low}_e = |{top.take(2)}, {low}_r = &{top.take(4)};\n"
        text += f"  wire [13:0] {low}_at = {{{which}, 6'd0, {top.take(3)}, 2'd0, {top.take(2)}}};\n"
        text += f"  wire [17:0] {low}_d = {top.take(18)}, {low}_q;\n  reg [17:0] {low}_want = 0;\n"
    text += _dp(name, mode)
    for port in "ab":
        low = f"{name}_{port}"
        row, mask = f"{name}[{low}_at[13:4]]", f"{{{{9{{{low}_at[1]}}}}, {{9{{{low}_at[0]}}}}}}"
        new = f"({row} & ~{mask} | {low}_d & {mask})"
        shown = (f"{low}_want", new, row)[mode]
        text += f"  always @(posedge clk_i) begin\n    if ({low}_r) {low}_want <= 0;\n"
        text += f"    else if ({low}_e) {low}_want <= {low}_w ? {shown} : {row};\n"
        text += f"    if ({low}_e && {low}_w) {row} <= {new};\n  end\n"
    top.check(f"DPX9B mode {mode}", text, " || ".join(f"{name}_{port}_q != {name}_{port}_want" for port in "ab"))


def _collisions(top: Top) -> None:
    """A word that is written and read at one edge is read as garbage, and written well."""
    data = top.take(36)
    text = "  reg clash_go = 0;\n  reg [35:0] clash_old = 0, clash_new = 0;\n"
    text += f"  always @(posedge clk_i) begin clash_go <= 1; clash_old <= {data}; clash_new <= clash_old; end\n"
    text += "  wire meet_w = 1'b1, meet_e = 1'b1, meet_r = 1'b0;\n"
    text += f"  wire [13:0] meet_at = 14'h122f, meet_from = 14'h1220;\n  wire [35:0] meet_d = {data}, meet_q;\n"
    text += _sdp("meet")
    for port, write in (("a", "1'b1"), ("b", "1'b0")):
        low = f"both_{port}"
        text += f"  wire {low}_w = {write}, {low}_e = 1'b1, {low}_r = 1'b0;\n"
        text += f"  wire [13:0] {low}_at = 14'h1233;\n  wire [17:0] {low}_d = meet_d[17:0], {low}_q;\n"
    text += _dp("both", 2)
    wrong = "clash_go && (meet_q != ~clash_new || both_a_q != clash_new[17:0] || both_b_q != ~clash_new[17:0])"
    top.check("SDPX9B and DPX9B collisions", text, wrong)
