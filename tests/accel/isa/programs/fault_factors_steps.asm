; Factors lie in front of weights, at no other pitch.
.config ecp5w4
.section weights weights 0x0 512
.data random seed=55
.window 4096

load mem=uop z=2
load mem=wgt expand=1 pitch=2 z=16
finish
