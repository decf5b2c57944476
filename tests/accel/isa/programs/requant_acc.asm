; Results widened back into the accumulator in place, used by ALU, then sent out.
.config tiny
.section uops uops 0x0 32
.uop dst=0 src=4
.section prm constants 0x20 64
.prm bias=10 multiplier=1518500249 shift=33
.section values input 0x60 128
.data random seed=18
.section out output 0xe0 64

load mem=uop dram=0x0 z=1
load mem=prm dram=0x20 z=4
load mem=acc expand=1 dram=0x60 z=4 set=s0
requant form=scale dst=acc clip_lo=-100 clip_hi=100 iter_in=8 acc_in=1 dst_in=1 wait=s0 set=s1
alu alu_op=add uop_end=1 iter_in=4 dst_in=1 src_in=1 wait=s1 set=s2
requant form=pass dst=acc clip_lo=-128 clip_hi=60 iter_in=4 acc_in=1 dst_base=300 dst_in=1 wait=s2
requant form=pass clip_lo=-128 clip_hi=127 iter_in=12 acc_in=1 dst_in=1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=4 acc_base=300 acc_in=1 dst_base=12 dst_in=1 set=s3
store mem=out dram=0xe0 z=4 wait=s3
finish
