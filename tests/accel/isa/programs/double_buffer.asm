; Six tiles through two halves of every scratchpad, with tokens both ways between four units.
.config tiny
.section uops uops 0x0 32
.uop first=1
.uop src=1 wgt=1
.section weights weights 0x20 32
.data random seed=19 low=-9 high=9
.section prm constants 0x40 64
.prm bias=3 multiplier=1431655765 shift=34
.section input input 0x80 384
.data random seed=20
.section out output 0x200 192

; semaphores of half h: s(0+h) input full, s(2+h) input free, s(4+h) accumulator full, s(6+h) accumulator free,
; s(8+h) output full, s(10+h) output free
load mem=uop dram=0x0 z=2
load mem=wgt dram=0x20 z=2
load mem=prm dram=0x40 z=4
load mem=inp dram=0x80 sram=0 z=4 set=s0
gemm overwrite=1 uop_end=2 iter_in=8 acc_in=1 inp_in=2 acc_base=0 inp_base=0 wait=s0 set=s2,s4
requant form=scale clip_lo=-128 clip_hi=127 iter_in=8 acc_base=0 acc_in=1 dst_base=0 dst_in=1 wait=s4 set=s6,s8
store mem=out dram=0x200 sram=0 z=2 wait=s8 set=s10
load mem=inp dram=0xc0 sram=64 z=4 set=s1
gemm overwrite=1 uop_end=2 iter_in=8 acc_in=1 inp_in=2 acc_base=512 inp_base=64 wait=s1 set=s3,s5
requant form=scale clip_lo=-128 clip_hi=127 iter_in=8 acc_base=512 acc_in=1 dst_base=64 dst_in=1 wait=s5 set=s7,s9
store mem=out dram=0x220 sram=64 z=2 wait=s9 set=s11
load mem=inp dram=0x100 sram=0 z=4 wait=s2 set=s0
gemm overwrite=1 uop_end=2 iter_in=8 acc_in=1 inp_in=2 acc_base=0 inp_base=0 wait=s0,s6 set=s2,s4
requant form=scale clip_lo=-128 clip_hi=127 iter_in=8 acc_base=0 acc_in=1 dst_base=0 dst_in=1 wait=s4,s10 set=s6,s8
store mem=out dram=0x240 sram=0 z=2 wait=s8 set=s10
load mem=inp dram=0x140 sram=64 z=4 wait=s3 set=s1
gemm overwrite=1 uop_end=2 iter_in=8 acc_in=1 inp_in=2 acc_base=512 inp_base=64 wait=s1,s7 set=s3,s5
requant form=scale clip_lo=-128 clip_hi=127 iter_in=8 acc_base=512 acc_in=1 dst_base=64 dst_in=1 wait=s5,s11 set=s7,s9
store mem=out dram=0x260 sram=64 z=2 wait=s9 set=s11
load mem=inp dram=0x180 sram=0 z=4 wait=s2 set=s0
gemm overwrite=1 uop_end=2 iter_in=8 acc_in=1 inp_in=2 acc_base=0 inp_base=0 wait=s0,s6 set=s2,s4
requant form=scale clip_lo=-128 clip_hi=127 iter_in=8 acc_base=0 acc_in=1 dst_base=0 dst_in=1 wait=s4,s10 set=s6,s8
store mem=out dram=0x280 sram=0 z=2 wait=s8 set=s10
load mem=inp dram=0x1c0 sram=64 z=4 wait=s3 set=s1
gemm overwrite=1 uop_end=2 iter_in=8 acc_in=1 inp_in=2 acc_base=512 inp_base=64 wait=s1,s7 set=s3,s5
requant form=scale clip_lo=-128 clip_hi=127 iter_in=8 acc_base=512 acc_in=1 dst_base=64 dst_in=1 wait=s5,s11 set=s7,s9
store mem=out dram=0x2a0 sram=64 z=2 wait=s9 set=s11
finish
