; COMPUTE waits for a token that nobody gives, STORE for COMPUTE.
.config tiny
.section uops uops 0x0 32
.uop
.section out output 0x20 32

load mem=uop z=1 set=s0
gemm uop_end=1 wait=s0,s5 set=s1
store mem=out dram=0x20 z=1 wait=s1
finish
