; A softmax looks up 256 entries.
.config tiny
.section input input 0x0 64
.data random seed=27
.section out output 0x60 64
.window 4096

load mem=acc expand=1 dram=0x0 z=2 set=s0
requant form=pass clip_lo=-128 clip_hi=127 iter_in=8 acc_in=1 dst_in=1 wait=s0 set=s1
row columns=4 cof_base=1
finish
