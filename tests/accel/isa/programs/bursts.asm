; Transfers longer than a burst that cross 4 KiB boundaries, on odd granules.
.config tiny
.section pad scratch 0x0 992
.section input input 0x3e0 5120
.data random seed=15
.section out output 0x17e0 4096

load mem=acc expand=1 dram=0x3f0 z=240 set=s0
requant form=pass clip_lo=-128 clip_hi=127 iter_in=960 acc_in=1 dst_in=1 wait=s0 set=s1
store mem=out dram=0x1800 z=240 wait=s1
finish
