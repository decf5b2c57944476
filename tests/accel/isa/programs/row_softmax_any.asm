; Softmax by a table of anything: two rows, one after the other, and a sum of zero.
.config tiny
.section cof constants 0x0 2048
.data random seed=9
.section values input 0x800 128
.data random seed=43
.section out output 0x880 128

load mem=cof dram=0x0 z=128
load mem=acc expand=1 dram=0x800 z=8 set=s0
row rows=1 columns=64 entry_step=1 visible=0xffff multiplier=65535 shift=-15 wait=s0
row rows=1 columns=61 acc_base=16 entry_step=1 visible=17 multiplier=32768 shift=15
row rows=1 columns=3 entry_step=1 acc_base=31 multiplier=1 zero_point=127 set=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=32 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0x880 z=8 wait=s2
finish
