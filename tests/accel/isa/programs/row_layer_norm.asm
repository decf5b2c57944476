; Layer norm of 4 rows of 29 columns: coefficients of every sign, what lies behind the last column changes too.
.config tiny
.section cof constants 0x0 256
.cof gain=900 bias=-77 lanes=8
.cof gain=-32768 bias=2147483647 lanes=2
.cof gain=32767 bias=-2147483648 lanes=2
.cof gain=1024 lanes=12
.cof gain=-1 bias=5 lanes=8
.section values input 0x100 128
.data random seed=44
.section out output 0x180 128

load mem=cof dram=0x0 z=16
load mem=acc expand=1 dram=0x100 z=8 set=s0
row kind=layer_norm rows=4 columns=29 row_step=8 entry_step=1 shift=14 zero_point=-3 epsilon_low=12345 wait=s0 set=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=32 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0x180 z=8 wait=s2
finish
