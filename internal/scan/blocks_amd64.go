package scan

import "golang.org/x/sys/cpu"

// canLook says whether the processor can do what look does: compare 32 bytes at once.
func canLook() bool { return cpu.X86.HasAVX2 }

// look marks what is in the next blocks of p, which has as many bytes at least.
//
//go:noescape
func look(into *[blocks]block, p *byte)
