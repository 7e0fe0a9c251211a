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
	var left remains
	var err error
	if l.opened {
		left.mark = mark
		left.ids, err = l.Target.Open(ctx, mark)
	} else {
		left, err = l.openSaved(ctx, mark)
	}
	var lost *sink.LostError
	if err != nil && !errors.As(err, &lost) {
		return err
	}
	l.mark, l.plain = left.mark, left.plain
	if mark == "" || lost != nil && left.plain == "" {
		var markErr error
		if l.mark, markErr = l.Target.Write(ctx, nil); markErr != nil {
			return fmt.Errorf("read the mark: %w", markErr)
		}
		l.plain = l.mark
	}
	if err := l.remember(left.ids); err != nil {
		return err
	}
	if err := l.settleClaimed(left.ids); err != nil {
		return err
	}
	l.observer.Opened(l.Name, len(left.ids))
	return err
}

// remains are what an earlier process left in a sink's log.
type remains struct {
	ids   []string // of records that the saved state does not know, and others
	mark  sink.Mark
	plain sink.Mark // the same one, or where that carries ids an earlier one; "" where the log has lost both
}

// openSaved opens the sink at its saved mark, which may carry ids. Where the log has lost it, not all that it carries is still there;
// but what lies behind the plain mark is, as far as the log reaches that. The error is a *sink.LostError then, too.
func (l *listener) openSaved(ctx context.Context, saved sink.Mark) (remains, error) {
	carried, err := l.store.Carried(l.Name)
	if err != nil {
		return remains{}, err
	}
	ids, err := l.Target.Open(ctx, saved)
	var lost *sink.LostError
	switch {
	case err == nil && len(carried.IDs) > 0:
		return remains{append(carried.IDs, ids...), saved, carried.From}, nil
	case err == nil:
		return remains{ids, saved, saved}, nil
	case !errors.As(err, &lost) || len(carried.IDs) == 0:
		return remains{}, err
	}
	ids, again := l.Target.Open(ctx, carried.From)
	switch {
	case again == nil:
		return remains{ids, carried.From, carried.From}, err
	case errors.As(again, &lost):
		return remains{}, err
	}
	return remains{}, again
}

// remember notes what the log holds. At first these are an earlier process' records, which come again in
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
	left, err := l.openSaved(ctx, saved)
	var lost *sink.LostError
	if err != nil && !errors.As(err, &lost) {
		return err
	}
	if left.plain == "" {
		left.mark, left.plain = end, end
	}
	l.delivered.clear() // what it has of the log may be what was lost
	if err := l.delivered.add(left.ids, nil, l.clusterUID); err != nil {
		return err
	}
	if err := l.recall(ctx); err != nil {
		return err
	}
	return l.lost(left.mark, left.plain)
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
