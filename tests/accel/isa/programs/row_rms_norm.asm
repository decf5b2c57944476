; RMS norm of 2 rows of 61 columns less a zero point, without epsilon.
.config tiny
.section cof constants 0x0 512
.cof gain=1500 bias=100000 lanes=64
.section values input 0x200 128
.data random seed=46
.section out output 0x280 128

load mem=cof dram=0x0 z=32
load mem=acc expand=1 dram=0x200 z=8 set=s0
row kind=rms_norm rows=2 columns=61 row_step=16 entry_step=1 shift=15 zero_point=7 inp_zero=-128 wait=s0 set=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=32 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0x280 z=8 wait=s2
finish
