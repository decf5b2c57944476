; FINISH must be the last instruction.
.config tiny
.section out output 0x0 32

load mem=inp z=1
finish
load mem=inp z=1
finish
