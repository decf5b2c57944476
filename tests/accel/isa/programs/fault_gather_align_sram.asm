; The first vector must start on a bus beat.
.config tiny
.section input input 0x0 128
.data random seed=3
.section out output 0x80 32

gather dram=0x10 sram=7 pitch=2 y=2 x=2 y_stride=32 row_bytes=20 run=8 x_step=3
finish
