; A second layer loads what the first one stored; the load waits for the last write response.
.config tiny
.section input input 0x0 64
.data random seed=23
.section middle scratch 0x40 64
.section out output 0x80 64

load mem=acc expand=1 dram=0x0 z=4 set=s0
requant form=pass zero_point=1 clip_lo=-50 clip_hi=50 iter_in=16 acc_in=1 dst_in=1 wait=s0 set=s1
store mem=out dram=0x40 z=4 wait=s1 set=s2
load mem=acc expand=1 dram=0x40 z=4 wait=s2 set=s3
requant form=pass zero_point=-60 clip_lo=-100 clip_hi=-20 iter_in=16 acc_in=1 dst_base=16 dst_in=1 wait=s3 set=s4
store mem=out dram=0x80 sram=16 z=4 wait=s4
finish
