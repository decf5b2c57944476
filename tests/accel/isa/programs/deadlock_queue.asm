; Loads behind one that waits fill their queue and hold up the store that would wake it.
.config tiny
.section input input 0x0 32
.section out output 0x20 32

load mem=inp z=1 wait=s0
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
load mem=inp z=1
store mem=out dram=0x20 z=1 set=s0
finish
