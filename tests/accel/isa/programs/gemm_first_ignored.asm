; Without `overwrite`, marks on micro-ops mean nothing.
.config tiny
.section uops uops 0x0 64
.uop dst=0 src=0 wgt=0 first=1
.uop dst=1 src=1 wgt=1 first=1
.uop dst=0 src=2 wgt=2
.uop dst=1 src=3 wgt=3
.uop dst=2 src=0 wgt=1
.uop dst=0 src=1 wgt=0
.uop
.section weights weights 0x40 64
.data random seed=5
.section input input 0x80 32
.data random seed=6
.section bias constants 0xa0 64
.data i32 11 22 33 44 55 66 77 88 99 -11 -22 -33 -44 -55 -66 -77
.section out output 0xe0 64

load mem=uop dram=0x0 z=4
load mem=wgt dram=0x40 z=4
load mem=acc dram=0xa0 z=4
load mem=inp dram=0x80 z=2 set=s0
gemm overwrite=0 uop_end=6 wait=s0
; split 4 accumulator entries into bytes: low byte first, each sign-extended
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=mov src_in=1 dst_base=16 src_base=0
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=16
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=16
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=mov src_in=1 dst_base=20 src_base=0
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=8 dst_base=20
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=20
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=20
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=mov src_in=1 dst_base=24 src_base=0
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=16 dst_base=24
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=24
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=24
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=mov src_in=1 dst_base=28 src_base=0
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=28
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=28
alu uop_begin=6 uop_end=7 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=28 set=s14
requant form=pass clip_lo=-128 clip_hi=127 iter_in=16 acc_base=16 acc_in=1 dst_in=1 wait=s14 set=s15
store mem=out dram=0xe0 z=4 wait=s15
finish
