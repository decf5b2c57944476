; CLIP to [-100, 1000], to [-32768, 32767], and with bounds out of order (the lower one wins).
.config tiny
.section uops uops 0x0 32
.uop
.section values constants 0x20 128
.data i32 0 1 -1 2 -2 7 -8 127 -128 128 255 -129 32767 -32768 32768 65536 -65536 1000000 -1000000 16777216 2147483647 -2147483648 2147483646 -2147483647 46341 -46341 3 -3 12345 -54321 5 -7
.section out output 0xa0 256

load mem=uop dram=0x0 z=1
load mem=acc dram=0x20 z=8 set=s0
alu alu_op=mov uop_end=1 iter_in=8 dst_in=1 src_in=1 dst_base=8 wait=s0
alu alu_op=clip use_imm=1 imm=-6552600 uop_end=1 iter_in=5 dst_in=1 dst_base=8
alu alu_op=clip use_imm=1 imm=-2147450881 uop_end=1 iter_in=2 dst_in=1 dst_base=13
alu alu_op=clip use_imm=1 imm=3276820 uop_end=1 dst_base=15
; split 8 accumulator entries into bytes: low byte first, each sign-extended
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mov src_in=1 dst_base=512 src_base=8
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=512
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=512
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mov src_in=1 dst_base=520 src_base=8
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=8 dst_base=520
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=520
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=520
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mov src_in=1 dst_base=528 src_base=8
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=16 dst_base=528
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=528
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=528
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mov src_in=1 dst_base=536 src_base=8
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=536
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=536
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=536 set=s14
requant form=pass clip_lo=-128 clip_hi=127 iter_in=32 acc_base=512 acc_in=1 dst_in=1 wait=s14 set=s15
store mem=out dram=0xa0 z=8 wait=s15
finish
