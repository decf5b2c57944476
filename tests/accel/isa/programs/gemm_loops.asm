; Two loops with steps in every index, some of them -1 (65535), and all three bases.
.config tiny
.section uops uops 0x0 32
.uop dst=1 src=2 wgt=0 first=1
.uop dst=1 src=5 wgt=3
.uop
.section weights weights 0x20 256
.data random seed=7
.section input input 0x120 128
.data random seed=8
.section out output 0x1a0 192

load mem=uop dram=0x0 z=2
load mem=wgt dram=0x20 z=16
load mem=inp dram=0x120 z=8 set=s0
gemm overwrite=1 uop_end=2 iter_out=3 iter_in=4 acc_out=4 acc_in=1 inp_out=65535 inp_in=6 wgt_out=4 wgt_in=65535 acc_base=15 inp_base=2 wgt_base=3 wait=s0
; split 12 accumulator entries into bytes: low byte first, each sign-extended
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=mov src_in=1 dst_base=256 src_base=16
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=256
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=256
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=mov src_in=1 dst_base=268 src_base=16
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=8 dst_base=268
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=268
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=268
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=mov src_in=1 dst_base=280 src_base=16
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=16 dst_base=280
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=280
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=280
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=mov src_in=1 dst_base=292 src_base=16
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=292
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=292
alu uop_begin=2 uop_end=3 iter_in=12 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=292 set=s14
requant form=pass clip_lo=-128 clip_hi=127 iter_in=48 acc_base=256 acc_in=1 dst_in=1 wait=s14 set=s15
store mem=out dram=0x1a0 z=12 wait=s15
finish
