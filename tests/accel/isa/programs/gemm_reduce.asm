; The outer loop repeats the same accumulator entries, first adding, then with overwriting micro-ops.
.config tiny
.section uops uops 0x0 32
.uop first=1
.uop dst=1 src=1 wgt=1 first=1
.uop dst=1 wgt=2
.uop
.section weights weights 0x20 256
.data random seed=9
.section input input 0x120 128
.data random seed=10
.section out output 0x1a0 64

load mem=acc dram=0x120 z=8
load mem=uop dram=0x0 z=2
load mem=wgt dram=0x20 z=16
load mem=inp dram=0x120 z=8 set=s0
gemm uop_end=3 iter_out=4 inp_out=3 wgt_out=3 wait=s0
gemm overwrite=1 uop_end=3 iter_out=3 iter_in=2 acc_in=2 acc_base=2 inp_out=2 inp_in=1 wgt_out=2 wgt_in=5
; split 4 accumulator entries into bytes: low byte first, each sign-extended
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=mov src_in=1 dst_base=256 src_base=0
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=256
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=256
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=mov src_in=1 dst_base=260 src_base=0
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=8 dst_base=260
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=260
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=260
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=mov src_in=1 dst_base=264 src_base=0
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=16 dst_base=264
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=264
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=264
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=mov src_in=1 dst_base=268 src_base=0
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=268
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=268
alu uop_begin=3 uop_end=4 iter_in=4 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=268 set=s14
requant form=pass clip_lo=-128 clip_hi=127 iter_in=16 acc_base=256 acc_in=1 dst_in=1 wait=s14 set=s15
store mem=out dram=0x1a0 z=4 wait=s15
finish
