; Program order is not execution order: the store stands first and waits for the others.
.config tiny
.section input input 0x0 64
.data random seed=22
.section out output 0x40 64

store mem=out dram=0x40 z=4 wait=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=16 acc_in=1 dst_in=1 wait=s0 set=s1
load mem=acc expand=1 dram=0x0 z=4 set=s0
finish
