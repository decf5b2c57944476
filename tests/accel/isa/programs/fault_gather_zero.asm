; A vector of no entries: the pitch of gather must be at least 1.
.config tiny
.section out output 0x80 32

.word 0x0000000800000014000000200002000200000008000000100000000000000007
finish
