; Adds to entries that LOAD filled; the same entry in consecutive micro-ops, and twice over by the loops;
; sums wrap around at 32 bits.
.config tiny
.section uops uops 0x0 64
.uop dst=0 src=0 wgt=0
.uop dst=0 src=1 wgt=1
.uop dst=0 src=2 wgt=2
.uop dst=0 src=3 wgt=3
.uop dst=1 src=4 wgt=0
.uop dst=0 src=5 wgt=1
.uop dst=1 src=6 wgt=2
.uop dst=0 src=7 wgt=3
.section weights weights 0x40 64
.data random seed=3
.section input input 0x80 32
.data random seed=4
.section bias constants 0xa0 32
.data i32 1 -1 2147483647 -2147483648 100 200 300 400
.section out output 0xc0 32

load mem=uop dram=0x0 z=4
load mem=wgt dram=0x40 z=4
load mem=acc dram=0xa0 z=2
load mem=inp dram=0x80 z=2 set=s0
gemm uop_end=8 iter_out=3 iter_in=2 wait=s0
; split 2 accumulator entries into bytes: low byte first, each sign-extended
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=mov src_in=1 dst_base=16 src_base=0
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=16
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=16
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=mov src_in=1 dst_base=18 src_base=0
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=8 dst_base=18
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=18
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=18
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=mov src_in=1 dst_base=20 src_base=0
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=16 dst_base=20
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=20
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=20
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=mov src_in=1 dst_base=22 src_base=0
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=22
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=22
alu uop_begin=0 uop_end=1 iter_in=2 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=22 set=s14
requant form=pass clip_lo=-128 clip_hi=127 iter_in=8 acc_base=16 acc_in=1 dst_in=1 wait=s14 set=s15
store mem=out dram=0xc0 z=2 wait=s15
finish
