; SHR with rounding half_up: shifts by vector lanes (low five bits), then by the immediates 0, 1, 3 and 31.
.config tiny
.section uops uops 0x0 32
.uop dst=0 src=8
.uop
.section values constants 0x20 256
.data i32 1 2 3 4 5 6 7 8 -1 -2 -3 -4 -5 -6 -7 -8 0 2147483647 -2147483648 -2147483647 12 20 -12 -20 40 24 -40 -24 6 -6 10 -10
.data i32 1 1 1 2 1 2 1 2 1 1 1 2 1 2 1 2 5 31 31 31 3 3 3 3 4 4 4 4 0 32 -31 34
.section out output 0x120 256

load mem=uop dram=0x0 z=1
load mem=acc dram=0x20 z=16 set=s0
alu alu_op=mov uop_begin=1 uop_end=2 iter_in=8 dst_in=1 src_in=1 dst_base=16 wait=s0
alu alu_op=shr rounding=half_up uop_end=1 iter_in=8 dst_in=1 src_in=1 dst_base=16
alu alu_op=mov uop_begin=1 uop_end=2 iter_in=8 dst_in=1 src_in=1 dst_base=24
alu alu_op=shr use_imm=1 rounding=half_up imm=0 uop_begin=1 uop_end=2 dst_base=24
alu alu_op=shr use_imm=1 rounding=half_up imm=1 uop_begin=1 uop_end=2 iter_in=3 dst_in=1 dst_base=25
alu alu_op=shr use_imm=1 rounding=half_up imm=3 uop_begin=1 uop_end=2 iter_in=3 dst_in=1 dst_base=28
alu alu_op=shr use_imm=1 rounding=half_up imm=31 uop_begin=1 uop_end=2 dst_base=31
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
