package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// open opens the sink at the mark and remembers what its log holds behind it. A sink without a mark gets one before its
// first record, so that a crash after that record finds it. After a *sink.LostError the sink is open.
func (l *listener) open(ctx context.Context, mark sink.Mark) error {
	ids, err := l.Target.Open(ctx, mark)
	var lost *sink.LostError
	if err != nil && !errors.As(err, &lost) {
		return err
	}
	l.mark = mark
	if mark == "" || lost != nil {
		var markErr error
		if l.mark, markErr = l.Target.Write(ctx, nil); markErr != nil {
			return fmt.Errorf("read the mark: %w", markErr)
		}
	}
	if err := l.remember(ids); err != nil {
		return err
	}
	if err := l.settleClaimed(ids); err != nil {
		return err
	}
	l.observer.Opened(l.Name, len(ids))
	return err
}

// remember notes what the log holds behind the mark. At first these are an earlier process' records, which come again in
// whatever shape; after that they are this one's last batch, which is tried again as it is.
func (l *listener) remember(ids []string) error {
	if !l.opened {
		l.opened = true
		defer func() { l.spooledFirst = nil }()
		defer l.compared.Store(true)
		l.behindMark = ids
		return l.delivered.add(ids, l.spooledFirst, l.clusterUID)
	}
	l.retried = make(map[string]struct{}, len(ids))
	for _, id := range ids {
		l.retried[id] = struct{}{}
	}
	return nil
}

// reopen opens the sink again at the last mark, after an error that the sink could not mend, for as long as ctx lives.
func (l *listener) reopen(ctx context.Context) error {
	var lost *sink.LostError
	again := func() error {
		if lost != nil {
			return l.makeGood(ctx)
		}
		err := l.Target.Close(ctx)
		if err == nil {
			err = l.open(ctx, l.mark)
		}
		if err == nil || ctx.Err() != nil || isPermanent(err) {
			return err
		}
		l.observer.Failed(l.Name, err)
		if errors.As(err, &lost) {
			return l.makeGood(ctx)
		}
		return err
	}
	for {
		if err := l.patience.wait(ctx); err != nil {
			return err
		}
		if err := again(); err == nil || ctx.Err() != nil || isPermanent(err) {
			return err
		}
	}
}

// patience is how long a sink that failed is left alone before it is opened again. That it opens proves nothing, so the waits
// grow until it has taken a batch. The zero value is ready for use.
type patience struct {
	waits *backoff.ExponentialBackOff // nil: it did not fail since
}

// wait returns when the sink may be opened again, at once after the first failure, or with ctx's error.
func (p *patience) wait(ctx context.Context) error {
	if p.waits == nil {
		p.waits = retryForever()
		return ctx.Err()
	}
	timer := time.NewTimer(p.waits.NextBackOff())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reset notes that the sink has taken a batch.
func (p *patience) reset() { p.waits = nil }

// makeGood is the answer to a log that lost records while running. The saved mark stays, if the log still reaches it. If it
// does not, it goes back to the log's end: were it to stay, the log could grow to it again, and a crash would find nothing
// behind it. It never goes forward, since what lies between may not be saved.
func (l *listener) makeGood(ctx context.Context) error {
	end, saved := l.mark, l.line.savedMark(l.index)
	ids, err := l.Target.Open(ctx, saved)
	var lost *sink.LostError
	mark := saved
	switch {
	case errors.As(err, &lost):
		mark = end
	case err != nil:
		return err
	}
	l.delivered.clear() // what it has of the log may be what was lost
	if err := l.delivered.add(ids, nil, l.clusterUID); err != nil {
		return err
	}
	if err := l.recall(ctx); err != nil {
		return err
	}
	return l.lost(mark)
}

func isPermanent(err error) bool {
	var permanent *sink.PermanentError
	return errors.As(err, &permanent)
}

// retryForever waits 0.1 s at first and 10 s at most.
func retryForever() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(10*time.Second),
		backoff.WithMaxElapsedTime(0),
	)
}
