; A norm and a softmax on the four lanes of default.
.config default
.section cof constants 0x0 8192
.data random seed=77
.section values input 0x2000 128
.data random seed=47
.section out output 0x2080 128

load mem=cof dram=0x0 z=512
load mem=acc expand=1 dram=0x2000 z=8 set=s0
row kind=rms_norm rows=2 columns=50 row_step=4 entry_step=1 shift=13 inp_zero=3 wait=s0 set=s3
row kind=softmax rows=1 columns=128 entry_step=1 visible=100 multiplier=50000 shift=3 wait=s3 set=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=8 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0x2080 z=8 wait=s2
finish
