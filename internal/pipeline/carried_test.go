package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI3I6AStuckSinkKeepsNoOtherMarkBack: life after life one sink takes nothing. What the other one is given
// meanwhile, of the stream that waits and of another one, it is given once, and its log's tail stays short.
func TestI3I6AStuckSinkKeepsNoOtherMarkBack(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprint("both streams are the stuck sink's: ", shared), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playStuck(t, shared) })
		})
	}
}

func playStuck(t *testing.T, shared bool) {
	const lag, lives, each = 50, 4, 1000
	well, stuck := &memory{}, true
	hangs := &memory{fault: func(ctx context.Context, _ []sink.Message) error {
		if stuck {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}
	a, b := sinkOf("hangs", hangs), sinkOf("well", well)
	a.Queue, b.Queue = fifo.Limit{Bytes: 1 << 20, Records: 10}, fifo.Limit{Bytes: 1 << 20, Records: 10}
	r := newRig(t, a, b)
	r.config.MarkLag, r.config.StopTimeout = lag, time.Second
	version := 10
	for life := range lives {
		stuck = life < lives-1
		if err := r.life(func(line *Inlet) {
			for i := range 5 { // the watch goes on at the same position, each time a little further
				if i <= life {
					r.push(line, update(pods(), "p"+strconv.Itoa(i), i+1))
				}
			}
			for range each {
				version++
				rec := update(services(), "s", version)
				if !shared {
					rec.Sink = "well"
				}
				if shared && version%each > 5 {
					continue
				}
				r.push(line, rec)
			}
			synctest.Wait()
			if !stuck {
				r.drain(line, pods(), services())
			}
		}); err != nil {
			var left *LeftError
			if !errors.As(err, &left) {
				t.Fatal(err)
			}
		}
	}
	for _, found := range well.found {
		if found > lag+30 {
			t.Errorf("the log was opened %d records before its end", found)
		}
	}
	count := map[string]int{}
	for _, id := range strings.Fields(well.short()) {
		if count[id]++; count[id] > 1 {
			t.Errorf("%s is in the log %d times", id, count[id])
		}
	}
	for i := range lives {
		if id := fmt.Sprintf("p%d/%d/updated", i, i+1); count[id] != 1 {
			t.Errorf("%s is in the log %d times", id, count[id])
		}
	}
}
