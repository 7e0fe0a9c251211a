package sinktest

// testCase is one promise of the contract.
type testCase struct {
	name  string
	needs func(*Env) bool // nil: nothing
	run   func(*rig)
}

func cases() []testCase {
	return []testCase{
		{"I1 durable before Write returns", nil, durable},
		{"I3 order over many batches", nil, order},
		{"I3 messages of every shape", nil, shapes},
		{"batch of none tells the place", nil, emptyBatch},
		{"empty mark leaves alone what is there", nil, emptyMark},
		{"I1 Open returns what follows the mark", nil, openAtMark},
		{"I3 crash and go on behind", nil, crashAndGoOn},
		{"I3 crash in the first batch", nil, crashInFirstBatch},
		{"I3 random histories", nil, histories},
		{"I4 rejection names the message", func(e *Env) bool { return e.TooLarge > 0 }, rejection},
		{"I3 cut connections", func(e *Env) bool { return e.Cut != nil }, cutConnections},
		{"I3 pairs are whole", func(e *Env) bool { return e.Pairs }, pairs},
		{"I1 stalled transport", func(e *Env) bool { return e.Stall != nil }, stalled},
		{"I7 cancelled before", nil, cancelledBefore},
		{"I7 cancelled during Write", nil, cancelledDuring},
		{"I7 Close", nil, closing},
		{"I7 no goroutine is left", nil, leaks},
		{"I4 truncated log", func(e *Env) bool { return e.Truncate != nil }, truncated},
		{"I4 log made again", func(e *Env) bool { return e.Recreate != nil }, recreated},
		{"I4 log truncated while open", func(e *Env) bool { return e.Truncate != nil && e.SeesLoss }, truncatedWhileOpen},
		{"I4 log made again while open", func(e *Env) bool { return e.Recreate != nil && e.SeesLoss }, recreatedWhileOpen},
		{"I10 one of two writers", func(e *Env) bool { return e.Fenced }, oneWriter},
	}
}
