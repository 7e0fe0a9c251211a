package task

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// slowLog is a log of the state whose messages come one a second, for as long as it goes on. Its writer takes one
// message of a log of the state.
type slowLog struct {
	sink.Sink
	message  []byte
	messages int
	stands   bool  // after the last one
	over     error // of the context with which it was read
}

func (l *slowLog) Open(context.Context, sink.Opening) error { return nil }
func (l *slowLog) Close(context.Context) error              { return nil }
func (l *slowLog) Write(_ context.Context, batch []sink.Message) (sink.Mark, error) {
	l.message = batch[0].Value
	return "1", nil
}

// Read is sink.Reader's.
func (l *slowLog) Read(ctx context.Context, each func(*sink.Stored) error) error {
	for range l.messages {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			l.over = ctx.Err()
			return l.over
		}
		if err := each(&sink.Stored{Value: l.message}); err != nil {
			return err
		}
	}
	if l.stands {
		<-ctx.Done()
		l.over = ctx.Err()
	}
	return l.over
}

type slowReader struct{ *slowLog }

func (slowReader) Close() error { return nil }

// TestATakeoverWaitsForAReadingThatGetsOn: one that is cut off has to be begun anew, which takes longer. What stands
// still is cut off.
func TestATakeoverWaitsForAReadingThatGetsOn(t *testing.T) {
	for name, stands := range map[string]bool{"it gets on": false, "it stands still": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &slowLog{}
				place := statelog.Place{
					Name: "slow", Sink: log, Reader: func() (sink.Reader, error) { return slowReader{log}, nil }, Of: func(string) (string, []byte) { return "", nil },
				}
				of := statelog.Identity{Cluster: "c"}
				if _, err := statelog.Claim(t.Context(), place, statelog.Bid{Of: of}); err != nil {
					t.Fatal(err)
				}
				log.messages, log.stands = 20, stands
				b := &standby{log: &StateLog{place: place, logger: slog.New(slog.DiscardHandler)}}
				b.follower = &statelog.Follower{Place: place, Of: of, Copy: new(checkpoint.Copy)}
				began := time.Now()
				stop := b.follow(t.Context())
				synctest.Wait()
				stop()
				took := time.Since(began)
				if stands != (log.over != nil) || stands == b.status().Whole || took > 25*time.Second {
					t.Errorf("it ended after %s with %v, and %+v", took, log.over, b.status())
				}
			})
		})
	}
}
