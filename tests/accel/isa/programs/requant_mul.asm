; Products of two int8 tensors: zero points, multipliers of both signs and every width, r in steps with y.
.config tiny
.section prm constants 0x0 128
.prm multiplier=1 shift=7 y_zero=3 r_zero=-5
.prm lanes=2 multiplier=-30000 shift=22 y_zero=-128 r_zero=127
.prm lanes=2 multiplier=2147483647 shift=33 y_zero=127 r_zero=-128
.section values input 0x80 128
.data random seed=17
.section out output 0x100 64

load mem=prm dram=0x0 z=8
load mem=acc expand=1 dram=0x80 z=8 set=s0
requant form=mul zero_point=7 clip_lo=-90 clip_hi=100 iter_out=2 iter_in=8 acc_out=8 acc_in=1 res_base=16 dst_out=8 dst_in=1 prm_out=1 rounding=half_even wait=s0
requant form=mul zero_point=7 clip_lo=-128 clip_hi=127 acc_base=31 res_base=31 dst_base=15 rounding=half_away set=s1
store mem=out dram=0x100 z=4 wait=s1
finish
