package checkpoint

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI1MarkNeverPassesTheFrontier: a mark is only given when all that lies before it in the log is below the frontier,
// it never goes back, and as long as nothing was thinned out it is the newest such mark.
func TestI1MarkNeverPassesTheFrontier(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var marks Marks
		var seqs []uint64 // by mark: the mark is its place here
		var seq, frontier uint64
		given, writes := -1, random.IntN(3*maxMarks)
		for range writes {
			seq += uint64(random.IntN(3)) // 0 is a sink that was opened again
			marks.Written(seq, sink.Mark(strconv.Itoa(len(seqs))))
			seqs = append(seqs, seq)
			if random.IntN(50) == 0 {
				frontier += random.Uint64N(seq + 2 - min(frontier, seq+1))
				given = checkMark(t, &marks, seqs, frontier, given)
			}
			if len(marks.pairs) > maxMarks {
				t.Fatalf("%d pairs are kept, want at most %d", len(marks.pairs), maxMarks)
			}
		}
		if mark, ok := marks.At(seq + 1); writes > 0 && (!ok || mark != sink.Mark(strconv.Itoa(writes-1))) {
			t.Fatalf("with everything delivered the mark is %q, want the last, %d", mark, writes-1)
		}
	}
}

func checkMark(t *testing.T, marks *Marks, seqs []uint64, frontier uint64, before int) int {
	t.Helper()
	newest := -1
	for i, seq := range seqs {
		if seq < frontier {
			newest = i
		}
	}
	mark, ok := marks.At(frontier)
	if !ok {
		if newest >= 0 && len(seqs) < maxMarks {
			t.Fatalf("there is no mark below %d, want %d", frontier, newest)
		}
		return before
	}
	got, err := strconv.Atoi(string(mark))
	must(t, err)
	if got < before || seqs[got] >= frontier || len(seqs) < maxMarks && got != newest {
		t.Fatalf("mark %d of seq %d below frontier %d, after mark %d; the newest is %d", got, seqs[got], frontier, before, newest)
	}
	return got
}

func TestI6MarksAreThinned(t *testing.T) {
	var marks Marks
	const writes = 100_000
	for seq := uint64(0); seq < writes; seq++ {
		marks.Written(seq, sink.Mark(strconv.FormatUint(seq, 10)))
	}
	if n := len(marks.pairs); n > maxMarks || n < maxMarks/2 {
		t.Fatalf("%d pairs are kept, want %d to %d", n, maxMarks/2, maxMarks)
	}
	if mark, ok := marks.At(1); !ok || mark != "0" {
		t.Errorf("the oldest mark is %q, want \"0\": a sink that hangs keeps it", mark)
	}
	if mark, _ := marks.At(writes); mark != "99999" {
		t.Errorf("the newest mark is %q, want \"99999\"", mark)
	}
}
