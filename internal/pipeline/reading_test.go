package pipeline

import (
	"context"
	"runtime"
	"strconv"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// vast is a sink whose log holds more after its mark than anybody should keep: records of others, and such as are
// saved.
type vast struct {
	memory
	records int
	most    uint64 // bytes in use while it was read
}

func (v *vast) Open(ctx context.Context, at sink.Opening) error {
	if err := v.memory.Open(ctx, at); err != nil || at.Mark == "" {
		return err
	}
	found := at.After()
	for i := range v.records {
		rec := update(pods(), "p"+strconv.Itoa(i), 3)
		found(rec.ID("ffffffff-0000").String())
		found(rec.ID(clusterUID).String())
		if i%(v.records/8) == v.records/8-1 {
			v.most = max(v.most, inUse())
		}
	}
	found(idOf(update(pods(), "crashed", 6)))
	return nil
}

func inUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// Of what a log holds after the mark, only what the state does not know is kept: an outage may have left any number
// of records there, ours from disk under one mark, and those of others who write there, too.
func TestI6OfALogNothingIsKeptThatIsSaved(t *testing.T) {
	v := &vast{records: 100_000}
	r := newRig(t, sinkOf("vast", v))
	for _, records := range [][]*change.Record{{update(pods(), "a", 5)}, {update(pods(), "crashed", 6), update(pods(), "a", 7)}} {
		if err := r.life(func(line *Inlet) {
			r.push(line, records...)
			r.drain(line, pods())
		}); err != nil {
			t.Fatal(err)
		}
	}
	if after := inUse(); v.most == 0 || v.most > after+8<<20 {
		t.Errorf("%d MiB were in use while the log was read, and %d afterwards", v.most>>20, after>>20)
	}
	if got := v.short(); got != "a/5/updated a/7/updated" {
		t.Errorf("log is %s", got)
	}
}
