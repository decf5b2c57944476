; All sixteen semaphores, masks of many, counts above one, and a token that is left over at the end.
.config tiny
.section input input 0x0 64
.data random seed=21
.section out output 0x40 128

; s0 collects three before the output stage takes them one by one, s13 three for STORE; s15 is left over
load mem=acc expand=1 dram=0x0 z=1 set=s0,s1,s2,s3,s4,s5,s6,s7
load mem=acc expand=1 dram=0x0 sram=4 z=1 set=s0,s8,s9,s10,s11,s12
load mem=acc expand=1 dram=0x20 sram=8 z=2 set=s0
requant form=pass clip_lo=-128 clip_hi=127 iter_in=4 acc_in=1 dst_in=1 wait=s0,s1,s2,s3,s4,s5,s6,s7 set=s13
requant form=pass clip_lo=-128 clip_hi=127 iter_in=4 acc_base=4 acc_in=1 dst_base=4 dst_in=1 wait=s0,s8,s9,s10,s11,s12 set=s13
requant form=pass clip_lo=-128 clip_hi=127 iter_in=8 acc_base=8 acc_in=1 dst_base=8 dst_in=1 wait=s0 set=s13,s14,s15
store mem=out dram=0x40 z=1 wait=s13
store mem=out dram=0x50 sram=4 z=1 wait=s13
store mem=out dram=0x60 sram=8 z=2 wait=s13,s14
finish
