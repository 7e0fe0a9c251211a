package pipeline

import (
	"context"
	"errors"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI3LastWordsOfAKilledProcessAreNotRepeated: the network still held a batch of it when the next one opened the
// sink. That batch comes into the log before the next one's first, which fails therefore.
func TestI3LastWordsOfAKilledProcessAreNotRepeated(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		target := &memory{}
		r := crashed(t, target, update(pods(), "a", 2))
		late := idOf(update(pods(), "b", 3))
		target.fault = func(context.Context, []sink.Message) error {
			target.fault = nil
			target.log = append(target.log, late)
			return errors.New("the log is not where this writer left it")
		}
		rest := func(line *Inlet) {
			r.push(line, update(pods(), "a", 2), update(pods(), "b", 3), update(pods(), "c", 4))
			r.drain(line, pods())
		}
		err := r.life(func(line *Inlet) {
			r.push(line, update(services(), "x", 5))
			r.drain(line, services())
			if !restarted {
				rest(line)
			}
		})
		if restarted && err == nil {
			err = r.life(rest)
		}
		if want := "a/1/updated a/2/updated b/3/updated x/5/updated c/4/updated"; err != nil || target.short() != want {
			t.Errorf("restarted: %t: %v; log %s, want %s", restarted, err, target.short(), want)
		}
	}
}
