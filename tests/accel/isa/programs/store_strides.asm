; Strided and overlapping loads; contiguous runs that merge; strided stores that leave gaps.
.config tiny
.section input input 0x0 512
.data random seed=14
.section out output 0x200 512

; rows of three runs, 16 bytes apart by 48; the second row begins before the first ends
load mem=acc expand=1 dram=0x0 z=1 y=2 x=3 y_stride=32 x_stride=48
; merges into one row of 96 bytes, and into one run of 192
load mem=acc expand=1 dram=0x40 sram=24 z=2 y=2 x=3 y_stride=96 x_stride=32
; stride 0 repeats one run
load mem=acc expand=1 dram=0x100 sram=72 z=1 y=2 x=2 set=s0
requant form=pass clip_lo=-128 clip_hi=127 iter_in=88 acc_in=1 dst_in=1 wait=s0 set=s1
store mem=out dram=0x200 z=1 y=2 x=3 y_stride=128 x_stride=32 wait=s1
store mem=out dram=0x300 sram=24 z=2 y=2 x=3 y_stride=96 x_stride=32
store mem=out dram=0x3c0 sram=72 z=2 y=2 x=1 y_stride=32
finish
