#include "textflag.h"

// MARK notes in 64 bits which bytes of LOW and HIGH equal those of REG.
#define MARK(LOW, HIGH, REG, FIELD) \
	VPCMPEQB LOW, REG, Y10 \
	VPCMPEQB HIGH, REG, Y11 \
	VPMOVMSKB Y10, AX \
	VPMOVMSKB Y11, BX \
	SHLQ $32, BX \
	ORQ BX, AX \
	MOVQ AX, FIELD(DI)

// BROADCAST fills the register with the byte.
#define BROADCAST(BYTE, X, Y) \
	MOVL BYTE, AX \
	VMOVD AX, X \
	VPBROADCASTB X, Y

// func look(into *[blocks]block, p *byte)
TEXT ·look(SB), NOSPLIT, $0-16
	MOVQ into+0(FP), DI
	MOVQ p+8(FP), SI
	BROADCAST($0x22, X0, Y0) // '"'
	BROADCAST($0x5c, X1, Y1) // '\\'
	BROADCAST($0x7b, X2, Y2) // '{', and '[' with the bit for lower case set
	BROADCAST($0x7d, X3, Y3) // '}', and ']' with it
	BROADCAST($0x20, X4, Y4) // that bit
	MOVQ $4, CX

next:
	VMOVDQU (SI), Y6
	VMOVDQU 32(SI), Y7
	VPOR Y4, Y6, Y8
	VPOR Y4, Y7, Y9
	MARK(Y6, Y7, Y0, 0)
	MARK(Y6, Y7, Y1, 8)
	MARK(Y8, Y9, Y2, 16)
	MARK(Y8, Y9, Y3, 24)
	ADDQ $64, SI
	ADDQ $32, DI
	DECQ CX
	JNZ next
	VZEROUPPER
	RET
