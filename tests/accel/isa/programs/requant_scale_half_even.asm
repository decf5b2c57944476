; Form scale with rounding half_even: sixteen lanes of parameters over sixteen vectors, shifts from 0 to 62.
.config tiny
.section prm constants 0x0 256
.prm lanes=1 bias=0 multiplier=1 shift=0
.prm lanes=1 bias=0 multiplier=1 shift=1
.prm lanes=1 bias=0 multiplier=3 shift=1
.prm lanes=1 bias=0 multiplier=-1 shift=1
.prm lanes=1 bias=5 multiplier=1048576 shift=21
.prm lanes=1 bias=-7 multiplier=2147483647 shift=40
.prm lanes=1 bias=1000 multiplier=-2147483648 shift=45
.prm lanes=1 bias=2147483647 multiplier=12345 shift=20
.prm lanes=1 bias=-2147483648 multiplier=1 shift=24
.prm lanes=1 bias=1 multiplier=1518500249 shift=62
.prm lanes=1 bias=0 multiplier=-2147483648 shift=62
.prm lanes=1 bias=0 multiplier=2147483647 shift=61
.prm lanes=1 bias=-100 multiplier=77 shift=3
.prm lanes=1 bias=100 multiplier=-77 shift=4
.prm lanes=1 bias=0 multiplier=1073741824 shift=31
.prm lanes=1 bias=3 multiplier=1073741824 shift=32
.section values input 0x100 256
.data i32 0 2 -3 -100 3 100 -128 2147483647 127 -1000 0 2 -2147483648 -1 3 100 -2 5 127 -1000 -100 1000 -2147483648 -1 2147483647 1 -2 5 2 -3 -100 1000 100 -128 2147483647 1 -1000 0 2 -3 -1 3 100 -128 5 127 -1000 0 1000 -2147483648 -1 3 1 -2 5 127 -3 -100 1000 -2147483648 -128 2147483647 1 -2
.section out output 0x200 256

load mem=prm dram=0x0 z=16
load mem=acc dram=0x100 z=16 set=s0
requant form=scale rounding=half_even zero_point=-3 clip_lo=-128 clip_hi=127 iter_out=4 iter_in=16 acc_in=1 dst_out=16 dst_in=1 prm_out=1 wait=s0 set=s1
store mem=out dram=0x200 z=16 wait=s1
finish
