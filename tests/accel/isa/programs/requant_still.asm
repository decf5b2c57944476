; One vector for each row of vectors: gates multiply, then offsets are added; the second operand stays in the inner loop.
.config tiny
.section prm constants 0x0 64
.prm multiplier=3 bias=5 shift=6 y_zero=1 r_zero=-1
.section values input 0x40 128
.data random seed=23
.section out output 0xc0 96

load mem=prm dram=0x0 z=4
load mem=acc expand=1 dram=0x40 z=8 set=s0
requant form=mul still=1 clip_lo=-128 clip_hi=127 iter_out=3 iter_in=4 acc_out=4 acc_in=1 res_base=20 dst_out=4 dst_in=1 wait=s0
requant form=add still=1 clip_lo=-128 clip_hi=127 iter_out=3 iter_in=4 acc_out=4 acc_in=1 res_base=24 dst_base=12 dst_out=4 dst_in=1 rounding=floor set=s1
store mem=out dram=0xc0 z=6 wait=s1
finish
