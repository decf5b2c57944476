; Planes closer than they are long: the line written last stays. Two lines of four entries in a run.
.config tiny
.section uops uops 0x0 32
.uop wgt=1 first=1
.section input input 0x20 512
.data random seed=5
.section out output 0x220 256

load mem=uop dram=0x0 z=2
load mem=inp dram=0x20 sram=8 z=2 y=2 x=6 x_stride=32 y_stride=192 pitch=1
load mem=inp dram=0x20 sram=8 z=1 y=1 x=2 pitch=1 set=s0
gemm mode=max overwrite=1 uop_end=1 iter_in=64 acc_in=1 inp_in=1 inp_base=8 wait=s0 set=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=64 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0x220 z=16 wait=s2
finish
