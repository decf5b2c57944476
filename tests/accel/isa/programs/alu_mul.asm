; MUL with an immediate and of two vectors, 32-bit results read back byte by byte.
.config tiny
.section uops uops 0x0 32
.uop dst=0 src=8
.uop
.section values constants 0x20 256
.data i32 0 1 -1 2 -2 7 -8 127 -128 128 255 -129 32767 -32768 32768 65536 -65536 1000000 -1000000 16777216 2147483647 -2147483648 2147483646 -2147483647 46341 -46341 3 -3 12345 -54321 5 -7
.data i32 1 -1 0 3 -5 2147483647 -2147483648 31 32 -1 33 4 8 16 -16 65535 7 -7 100 256 -1 1 2147483647 -2147483648 46341 46341 -2147483648 2 -2 6 1 0
.section out output 0x120 256

load mem=uop dram=0x0 z=1
load mem=acc dram=0x20 z=16 set=s0
; tensor form: entries 16..23 = op(copy of 0..7, 8..15)
alu alu_op=mov uop_begin=1 uop_end=2 iter_in=8 dst_in=1 src_in=1 dst_base=16 wait=s0
alu alu_op=mul uop_begin=0 uop_end=1 iter_in=8 dst_in=1 src_in=1 dst_base=16
; immediate form in place: entries 24..31 = op(copy of 0..7, -1234567)
alu alu_op=mov uop_begin=1 uop_end=2 iter_in=8 dst_in=1 src_in=1 dst_base=24
alu alu_op=mul use_imm=1 imm=-1234567 uop_begin=1 uop_end=2 iter_out=2 iter_in=4 dst_out=4 dst_in=1 dst_base=24
; split 16 accumulator entries into bytes: low byte first, each sign-extended
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=mov src_in=1 dst_base=512 src_base=16
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=512
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=512
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=mov src_in=1 dst_base=528 src_base=16
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=8 dst_base=528
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=528
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=528
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=mov src_in=1 dst_base=544 src_base=16
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=16 dst_base=544
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=544
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=544
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=mov src_in=1 dst_base=560 src_base=16
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=560
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=560
alu uop_begin=1 uop_end=2 iter_in=16 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=560 set=s14
requant form=pass clip_lo=-128 clip_hi=127 iter_in=64 acc_base=512 acc_in=1 dst_in=1 wait=s14 set=s15
store mem=out dram=0x120 z=16 wait=s15
finish
