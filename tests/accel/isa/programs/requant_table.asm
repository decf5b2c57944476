; Each form through a table: into OUT, ACC and INP; what is clipped is looked up, and tables are written again.
.config tiny
.section prm constants 0x0 64
.prm multiplier=3 bias=5 shift=2 y_zero=1 r_zero=-1
.section tables constants 0x40 2048
.data random seed=5
.section values input 0x840 128
.data random seed=31
.section uops uops 0x8c0 32
.uop dst=8 wgt=1 first=1
.section out output 0x8e0 128

load mem=prm dram=0x0 z=4
load mem=uop dram=0x8c0 z=2
load mem=tab dram=0x40 z=128
load mem=acc expand=1 dram=0x840 z=8 set=s0
requant form=scale table=1 clip_lo=-128 clip_hi=127 iter_in=8 acc_in=1 dst_in=1 wait=s0
requant form=add table=2 clip_lo=-20 clip_hi=90 iter_in=8 acc_in=1 res_base=8 dst_base=8 dst_in=1
requant form=mul table=2 dst=acc clip_lo=-128 clip_hi=127 iter_in=4 acc_in=1 res_base=8 dst_base=16 dst_in=1
requant form=pass table=1 clip_lo=-128 clip_hi=127 iter_in=4 acc_base=16 acc_in=1 dst_base=16 dst_in=1
requant form=pass table=2 dst=inp clip_lo=-128 clip_hi=127 acc_base=3 set=s1,s2
load mem=tab dram=0x840 z=8 wait=s2 set=s3
gemm mode=max overwrite=1 uop_end=1 wait=s1 set=s4
requant form=pass clip_lo=-128 clip_hi=127 iter_in=4 acc_base=8 dst_base=20 dst_in=1 wait=s4
requant form=pass table=1 clip_lo=-128 clip_hi=-113 iter_in=8 acc_in=1 dst_base=24 dst_in=1 wait=s3 set=s5
store mem=out dram=0x8e0 z=8 wait=s5
finish
