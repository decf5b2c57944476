; Form pass: zero point and clip only; the sum wraps at 32 bits before it is clipped.
.config tiny
.section values input 0x0 256
.data i32 0 2 -3 -100 3 100 -128 2147483647 127 -1000 0 2 -2147483648 -1 3 100 -2 5 127 -1000 -100 1000 -2147483648 -1 2147483647 1 -2 5 2 -3 -100 1000 100 -128 2147483647 1 -1000 0 2 -3 -1 3 100 -128 5 127 -1000 0 1000 -2147483648 -1 3 1 -2 5 127 -3 -100 1000 -2147483648 -128 2147483647 1 -2
.section out output 0x100 64

load mem=acc dram=0x0 z=16 set=s0
requant form=pass zero_point=100 clip_lo=-20 clip_hi=120 iter_in=16 acc_in=1 dst_in=1 wait=s0 set=s1
store mem=out dram=0x100 z=4 wait=s1
finish
