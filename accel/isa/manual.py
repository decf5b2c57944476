"""Prose of the instruction-set manual: what tables cannot say. `gen_docs` puts it between the tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from relay_hw.accel.isa.alu import operations_text
from relay_hw.accel.isa.errors import FaultCode
from relay_hw.accel.isa.spec import Op

OVERVIEW = """\
The accelerator reads a program of 256-bit instructions from DRAM and sends each to the queue of its unit: LOAD
(LOAD and GATHER), COMPUTE (GEMM and ALU), OUTPUT (REQUANT), STORE or ROW. Units run concurrently; program order holds
inside a unit and nowhere else. What one unit must not do before another is expressed with *semaphores*.

All numbers are little-endian. DRAM addresses are byte offsets in a *window* that the host sets; nothing outside it
can be touched. Field positions do not depend on the configuration; what is legal (depths, granules) does."""

TOKENS = """\
There are {semaphores} counting semaphores of 8 bits, all zero when a program is launched. The instruction at the
head of a unit's queue starts when every semaphore of its `wait` mask is above zero; it then takes one token from
each, all at once. When its last effect is visible (last scratchpad write; for STORE the last write response) it
gives one token to each semaphore of its `set` mask. Units that want the same token at the same time are served in
the order LOAD, COMPUTE, OUTPUT, STORE, ROW. A count that would pass {semaphore_max} is a fault. Tokens that are left
over at the end are lost.

Rules for programs, which no device needs to check:

- Accesses of different units to one scratchpad entry or DRAM byte, one of them a write, are ordered by tokens.
- All of `tab` counts as one entry: no REQUANT takes a table while a LOAD writes one.
- An accumulator bank (entry index / (acc_depth / acc_banks)) has one read and one write port. COMPUTE reads and writes,
  OUTPUT reads (and writes with `dst=acc`), ROW reads and writes, LOAD writes. Two reads or two writes of one bank in
  one cycle are the fault ACC_BANK, so units that use a bank alike are kept apart in time by tokens.
- All of `cof` counts as one entry: no ROW runs while a LOAD writes coefficients.
- A ROW uses no accumulator entry twice.
- A queue holds `queue_depth` instructions; one that finds its queue full holds up all instructions behind it. A program
  whose tokens come from behind such an instruction never ends (the watchdog stops it)."""

MEMORIES = """\
An entry is the unit of scratchpad indices. `inp` holds INP_LANES = BLOCK_IN * WGT_BITS / 8 int8 lanes, `wgt` a tile of
WGT_BITS-bit weights [BLOCK_OUT][BLOCK_IN] (of 4 bits two to a byte, the earlier one in the low half), `acc` BLOCK_OUT
int32 lanes, `out` BLOCK_OUT int8 lanes, `uop` one micro-op, `prm` BLOCK_OUT parameter records, `tab` two results of a
table, `cof` BLOCK_OUT / 4 coefficient records. Scratchpads keep their content between launches; what they hold after
power-on is undefined.

Four neighbouring *lines* of `inp` can be read at once: a line is channel_align bytes, line l consists of the entries
l * E to l * E + E - 1 with E = channel_align / INP_LANES, and lies in RAM l mod 4. Where output blocks are written and
taken, `inp` is counted in *parts* of U = min(INP_LANES, BLOCK_OUT) bytes, an entry each unless blocks are smaller than
that; a block starts at a part that is a multiple of P = BLOCK_OUT / U. The operand of a product of tiles is BLOCK_IN
bytes: one entry, or with 4-bit weights (where an entry is a line) any two neighbouring ones."""

SEMANTICS: Mapping[Op, str] = MappingProxyType(
    {
        Op.LOAD: """\
```
image = pad_value everywhere, of [y_pad_0 + y + y_pad_1][x_pad_0 + x + x_pad_1][z granules]
for r in 0..y-1, c in 0..x-1:
    image[y_pad_0 + r][x_pad_0 + c] = dram[dram + r * y_stride + c * x_stride ...]   # z granules
scratchpad bytes from entry sram on = image; with expand numbers become wider
```
A granule is max(16, bus bytes) bytes. `dram`, `y_stride` and `x_stride` are multiples of it; `sram` starts on a bus
beat (with `expand`, on as many beats' worth of bytes as a beat becomes). `mem` is not `out`. With `expand`, which goes
with `acc` and `wgt`, each byte becomes an int32 lane of `acc`, sign-extended (four times the bytes), or each half of
WGT_BITS bits a weight, sign-extended, those in the low bits of a byte first (twice the bytes).

With `pitch` of 1, which `expand` of `wgt` may have beside it, weights are multiplied while they become wider:
```
granules of DRAM = one of factors, K of weights, one of factors, K of weights, ...   # z of weights in all
K = INP_LANES * WGT_BITS / 8
weight w of a block of K granules becomes the low WGT_BITS bits of w * (1 + factor w / INP_LANES of the block)
```
Factors are numbers from 0 to 15, the one in the low half of a byte first. So each lane has a factor for each INP_LANES
of its weights. Such a LOAD is one run (`y` and `x` are 1) without padding, of a configuration whose entries of `wgt`
are at least two granules long.

With `pitch` and `inp` a run is cut into lines, and each line of it goes to a plane of its own:
```
line k of run n (n counts all runs of the image, padding included) goes to line sram / E + 4 * pitch * k + n
```
`sram` is then a multiple of E and a run is whole lines. So one LOAD of N, H, W, C data puts each channel block in a
plane where horizontal neighbours are neighbouring lines, as GEMM's `taps` and `max` want them. Runs are written in
order, the lines of a run in order; where planes overlap the last one stays.""",
        Op.STORE: """\
The same walk in the other direction, without padding: consecutive bytes of `out` from entry `sram` on go to y rows of x
runs of z granules. Runs are written in order, so that where they overlap the last one stays.""",
        Op.GATHER: """\
```
for r in 0..y_pad_0+y+y_pad_1-1, c in 0..x-1, b in 0..run-1:
    row = r - y_pad_0;  at = c * x_step - left + b
    inside = 0 <= row < y and 0 <= at < row_bytes
    byte lane + b of the vector at inp entry sram + (r * x + c) * pitch
        = dram[dram + row * y_stride + at] if inside else pad_value
```
Bytes of a vector that no GATHER writes keep what they held. Of each row the granules that hold row_bytes are read,
once, into one of two row buffers of 4096 bytes, and the windows are taken from there. One GATHER for each row of the
kernel, with its own `dram` and `lane`, unfolds an image of few channels into vectors that are as deep as the array.""",
        Op.GEMM: """\
```
for o in 0..iter_out-1, i in 0..iter_in-1, u in uop_begin..uop_end-1:
    a = acc_base + o * acc_out + i * acc_in + uop[u].dst
    n = inp_base + o * inp_out + i * inp_in + uop[u].src
    k = wgt_base + o * wgt_out + i * wgt_in + uop[u].wgt
    old = 0 if overwrite and uop[u].first else acc[a]
    for lane in 0..BLOCK_OUT-1:  acc[a][lane] = wrap32(old[lane] + sum over j of x[j] * w[k][lane][j])
```
x is the operand at entry n; with `mode=entry` only its first INP_LANES numbers are taken, and no second entry is read
(which must exist otherwise). w is `wgt`, signed, with `nibble=whole`. Where WGT_BITS is 4, `nibble=low` takes the
weights as numbers from 0 to 15, and `nibble=high` multiplies the sum by 16: an 8-bit weight 16 * high + low is two
micro-ops with the halves in two entries. Where WGT_BITS is 8, `nibble` must be whole; with `mode=max` as well.

Indices are added modulo 2^16, so that 65535 is a step of -1. Micro-ops take effect one after the other.

The line above is that of `mode=matmul` and `entry`. The other modes take BLOCK_OUT channels of four lines, x[t] = the
BLOCK_OUT bytes that begin at part n mod L of line n / L + t, t = 0 to 3, where L = channel_align / U parts are a line;
n counts parts and is a multiple of P (else SRAM_RANGE):
```
taps:  G = BLOCK_IN / 4;  w[t] = w[k / G][lane][4 * (k mod G) + t]
       for lane in 0..BLOCK_OUT-1:  acc[a][lane] = wrap32(old[lane] + sum over t of x[t][lane] * w[t])
max:   m = uop[u].wgt
       for lane in 0..BLOCK_OUT-1:  acc[a][lane] = maximum of x[t][lane] for the t whose bit in m is set,
                                                   and of acc[a][lane] unless overwrite and uop[u].first
```
`taps` is a depthwise convolution: an entry of `wgt` holds G groups of four taps for each channel, and k counts groups.
It reads four lines, so line n / L + 3 must exist. `max` reads the lines up to the highest bit of the mask m, which is 1
to 15 (else SRAM_RANGE); wgt_base, wgt_out and wgt_in are 0. With overwrite, `first` and one tap it moves a vector from
`inp` to `acc`.""",
        Op.ALU: """\
```
for o in 0..iter_out-1, i in 0..iter_in-1, u in uop_begin..uop_end-1:
    d = dst_base + o * dst_out + i * dst_in + uop[u].dst
    s = src_base + o * src_out + i * src_in + uop[u].src
    b = imm in every lane if use_imm else acc[s]
    acc[d] = wrap32(op(acc[d], b))       # lane by lane
```
"""
        + operations_text()
        + """
Micro-ops take effect one after the other; the source index is not checked with `use_imm`.""",
        Op.REQUANT: """\
```
for o in 0..iter_out-1, i in 0..iter_in-1:
    y = acc[acc_base + o * acc_out + i * acc_in];  r = acc[res_base + (o if still else o * acc_out + i * acc_in)]
    p = prm[prm_base + o * prm_out];               d = dst_base + o * dst_out + i * dst_in
    for each lane:
        scale:  t = wrap32(y + p.bias) * p.multiplier
        add:    t = wrap9(y - p.y_zero) * p.multiplier + wrap9(r - p.r_zero) * p.bias
        mul:    t = wrap32(wrap9(y - p.y_zero) * p.multiplier) * wrap9(r - p.r_zero)
        result = clip(round_shift(t, p.shift) + zero_point, clip_lo, clip_hi)
        pass:   result = clip(wrap32(y + zero_point), clip_lo, clip_hi)
        if table: result = tab[table - 1][result + 128]
    out[d] = result as int8, or acc[d] = result as int32, or the bytes of inp from part d on = result as int8
```
Indices are added modulo 2^16. Vectors take effect one after the other, also where `dst=acc` writes what a later vector
reads. The parameter entry steps in the outer loop only; `pass` reads none. `clip_lo` is at most `clip_hi`. With
`dst=inp` the BLOCK_OUT bytes of a vector start at part d, a multiple of P (else SRAM_RANGE); other parts of an entry
keep what they held. So a layer's result is the next layer's input without a way through DRAM.

A table is 256 int8 numbers in 128 records of `tab`, the one for -128 first: any function of one number, at no cycle of
its own. `table` is at most the number of tables (else ILLEGAL_FIELD). With `still` one vector of the second operand
serves a whole inner loop.""",
        Op.ROW: """\
```
for r in 0..rows-1:
    element c = the low 8 bits, signed, of acc[acc_base + r * row_step + c / BLOCK_OUT * entry_step][c mod BLOCK_OUT]
    replace all elements of the row's entries, those behind `columns` too, by their results as int32
```
A row is its first `columns` elements; indices are added modulo 2^16. The last entry may hold more: their results follow
the same rules, but they count in no sum. `high16(v)` is v shifted left, or cut on the right, until it has 16 bits,
`bits(v)` the number of bits of v; `>>` rounds half_up.
```
softmax: an element counts where its column is below min(visible + r * visible_step, columns), and with `bounded` below
         cof[cof_base + 256][0].gain, unsigned
    top      = largest element that counts, -128 if none does
    entry    = cof[cof_base + top - element][c mod (BLOCK_OUT / 4)].gain, unsigned, where the element counts, else 0
    mantissa = entry mod 4096;  exponent = entry / 4096
    total    = sum of mantissa << exponent over the row, 1 if that is 0
    factor   = ((2^32 - 1) / high16(total) * multiplier) / 2^16               # quotients without their fraction
    result   = clip(mantissa * factor >> max(bits(total) + shift - exponent, 0) + zero_point, -128, 127)
norms: u = element, of rms_norm element - inp_zero
    n = columns;  s = sum of u over the row, of rms_norm 0;  q = sum of u * u over the row
    v    = max(16 * (n * q - s * s) + epsilon, 16)
    half = (bits(v) + 1) / 2 - 8;  m = v cut by 2 * half bits on the right (shifted left, where that is negative)
    r    = largest number with r * r * m < 2^46
    drop = max(half + (bits(n) + 1) / 2 - 11, 0)
    e    = wrap18(n * u - s >> drop)
    z    = min(max(e * r >> 11 + half - drop, -131071), 131071)
    result = clip((z * gain + bias >> shift) + zero_point, -128, 127)
             # gain and bias of cof[cof_base + c / (BLOCK_OUT / 4)][c mod (BLOCK_OUT / 4)]
```
`shift` is from -15 to 15 for softmax and from 0 to 40 for norms (else ILLEGAL_FIELD); the coefficients lie inside `cof`
(else SRAM_RANGE): a softmax has one entry for each distance from 0 to 255, where each of the unit's lanes finds its own
copy; of a norm the lanes of an entry belong to neighbouring columns. A configuration with `cof_depth` 0 has no such
unit (ILLEGAL_OPCODE). What `bounded` reads lies behind the exponentials, in lane 0: how many columns there are in this
launch, while the program is the same for all.""",
        Op.FINISH: """\
Every program ends with its only FINISH. It takes and gives no tokens.""",
    }
)

UOP_TEXT = """\
A micro-op is 64 bits. Reserved bits are ignored by devices and zero in programs."""

PRM_TEXT = """\
A record is 128 bits; an entry of `prm` is BLOCK_OUT records, lane 0 first. Multipliers are the low
MULTIPLIER_BITS+1 bits of their field, signed. A shift above 62 acts as 62. Bits that no field covers are ignored by
devices and zero in programs."""

TAB_TEXT = """\
A record is 64 bits; 128 of them are a table. Bits that no field covers are ignored by devices and zero in programs."""

COF_TEXT = """\
A record is 64 bits; an entry of `cof` is BLOCK_OUT / 4 records. Bits that no field covers are ignored by devices and
zero in programs."""

ARITHMETIC = """\
- `wrap32(v)`, `wrap18(v)`, `wrap9(v)`: the low 32 (18, 9) bits as a two's complement number.
- GEMM sums int8 products in int32 with wrap-around; since wrapping commutes with adding, no order of summation shows.
- `round_shift(t, s)`, 0 <= s <= 62, is t / 2^s rounded to an integer (s = 0 changes nothing):

| rounding | rule | 2.5 | 3.5 | -2.5 | -3.5 | as shifts |
|---|---|---|---|---|---|---|
| `half_up` (0) | nearest, ties towards plus infinity | 3 | 4 | -2 | -3 | (t + 2^(s-1)) >> s |
| `half_even` (1) | nearest, ties to even | 2 | 4 | -2 | -4 | half_up, minus 1 where it was a tie and came out odd |
| `half_away` (2) | nearest, ties away from zero | 3 | 4 | -3 | -4 | sign(t) * ((abs(t) + 2^(s-1)) >> s) |
| `floor` (3) | towards minus infinity | 2 | 3 | -3 | -4 | t >> s |

- abs(t) is at most 2^62: a wrapped 32-bit sum times a 32-bit multiplier. 64-bit arithmetic holds every step.
- `clip(v, lo, hi)` = min(max(v, lo), hi), applied after `zero_point` is added, without wrap-around in between."""

FAULT_TEXT: Mapping[FaultCode, str] = MappingProxyType(
    {
        FaultCode.NONE: "no fault",
        FaultCode.ILLEGAL_OPCODE: "unknown operation code; or the program does not end with FINISH (index COUNT)",
        FaultCode.RESERVED_BITS: "a reserved bit of an instruction is set",
        FaultCode.ILLEGAL_FIELD: "a value outside its closed set, a count of 0, a misaligned address, a memory that "
        "the instruction cannot use, bounds out of order, FINISH before the end",
        FaultCode.SRAM_RANGE: "an entry, or the micro-op range, outside its scratchpad",
        FaultCode.DRAM_RANGE: "a transfer outside the window; no burst of it is issued outside",
        FaultCode.TOKEN_OVERFLOW: "a semaphore would pass its largest count",
        FaultCode.AXI_READ: "error response to a read, or one with another ID than 0",
        FaultCode.AXI_WRITE: "error response to a write, or one with another ID than 0",
        FaultCode.WATCHDOG: "the launch took more cycles than WATCHDOG",
        FaultCode.ACC_BANK: "two reads or two writes of an accumulator bank in one cycle",
    }
)

FAULTS = """\
The first fault stops the accelerator: STATUS holds its code and FAULT_INDEX the index of the instruction. What had
started is left half done; DRAM and scratchpads may hold part of it. Codes 1 to 3, and scratchpad ranges of
transfers and micro-ops, are found when an instruction is dispatched, perhaps before those in front of it have run,
in the order opcode, reserved bits, fields, range. Indices of loops and the window are checked while the instruction
runs.

After a fault, and after a reset by CONTROL, bursts that were begun end first: AXI has no way to take one back. Until
then STATUS.busy stays, launches and writes of other registers are ignored, and a reset by CONTROL is kept; then it
clears STATUS. So a bus that answers late is waited for. A bus that never answers ends with the WATCHDOG's fault, code
and index to be read as of any other, but STATUS.busy stays until the chip's reset (`rst_ni`), which must be that of the
interconnect as well; with WATCHDOG at 0 there is no fault either."""

CONTAINER = """\
A program file is a prefix of {prefix} bytes, a header, and data:

| bytes | content |
|---|---|
| 0 to 7 | `RLHWPROG` |
| 8 to 11 | container version {container} |
| 12 to 15 | version of the instruction set, {isa} |
| 16 to 19 | hash of the configuration's sizes, as in register CONFIG_HASH |
| 20 to 23 | bytes of the header |
| 24 to 55 | SHA-256 of bytes 8 to 23, header and data |
| then | header: JSON with sorted keys: config, sizes, window_bytes, sections, tensors, regions |
| then | data of the sections that have some, in the header's order, without gaps |

Sections lie in the window at multiples of {section_align} bytes and do not overlap. Kinds: {kinds}. Exactly one is
of kind `program`: the instructions. One may be of kind `resident`: a second stream of instructions, FINISH included,
that is launched once before any launch of the program, and again after another program ran; what it loads stays in the
scratchpads, and the program relies on it. Sections without data are zero when a program is loaded. A tensor names bytes
of a section with shape, dtype and layout; a region names a range of instructions for reports. The same program
gives the same bytes."""

ACTIVATIONS = """\
Tensors of layout `flat` are row-major without padding. Activations of layout `nhwc` are N, H, W, C with C padded to
a multiple of channel_align = max(granule, INP_LANES, BLOCK_OUT), which is 16 but in configurations with wider blocks
or buses. So one pixel is a whole number of granules, any rectangle of pixels and channel blocks is one LOAD, and
the layout does not depend on the block sizes. Images of layout `rows` are N, H, W, C without padded channels; the
W x C bytes of a row are padded to a multiple of the granule, as GATHER reads them. Weights lie in the order in which
LOAD brings tiles of [BLOCK_OUT][BLOCK_IN] into `wgt`. Activations of layout `tiles` lie so too: each BLOCK_OUT pixels
of a row are a row of tiles with their channels as inputs, both padded with zeros to whole tiles."""

ASSEMBLY = """\
One statement a line; `;` begins a comment. Numbers are Python integers (`10`, `-3`, `0x1f`).

```
load mem=wgt dram=0x1000 z=16 y=2 y_stride=256 wait=s3,s4 set=s1   ; field=value; others are 0, counts 1
.config NAME [hash=N | SIZE=N ...] ; first: the configuration, by name, by hash or by all its sizes
.window BYTES                    ; size of the window; by default what the sections need, in steps of 4 KiB
.section NAME KIND OFFSET SIZE   ; statements with data fill the section declared last
.section NAME program OFFSET     ; place of the instructions; by default behind all sections
                                 ; instructions behind a section of kind resident fill that one
.uop dst=0 src=1 wgt=2 first=1   ; one micro-op
.prm bias=0 multiplier=1 shift=0 y_zero=0 r_zero=0 [lanes=BLOCK_OUT]
.cof gain=0 bias=0 [lanes=BLOCK_OUT / 4]
.data hex 00ff 1234              ; bytes
.data i8 1, -2 3                 ; also i16, i32, i64
.data random seed=7 [low=-128] [high=127] [size=REST]
.data zero [size=REST]
.tensor NAME SECTION OFFSET DTYPE 1x8x8x16 LAYOUT      ; shape `scalar` for none
.region NAME BEGIN END           ; instructions [BEGIN, END)
.word 0x...                      ; 256 bits as they are, legal or not
```
Random data are bytes low + (z >> 32) mod (high - low + 1), z the SplitMix64 sequence started at seed *
0x632BE59BD9B4E019. Disassembled programs assemble to the same program."""
