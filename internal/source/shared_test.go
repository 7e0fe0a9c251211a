package source

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// questions counts requests, each of which takes a while.
type questions struct {
	shared[int]
	mu    sync.Mutex
	asked int
	fails bool
}

func (q *questions) get(ctx context.Context, since time.Time) (int, error) {
	return q.shared.get(ctx, since, maxAge, func(ctx context.Context) (int, error) {
		q.mu.Lock()
		q.asked++
		n := q.asked
		q.mu.Unlock()
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if q.fails {
			return 0, errors.New("no answer")
		}
		return n, nil
	})
}

// together asks so often at once, and returns the answers and how many failed.
func (q *questions) together(ctx context.Context, n int) (answers map[int]int, failed int) {
	answers = map[int]int{}
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range n {
		wait.Go(func() {
			answer, err := q.get(ctx, time.Time{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed++
				return
			}
			answers[answer]++
		})
	}
	wait.Wait()
	return answers, failed
}

// TestAnAnswerServesAllWhoWait, whoever comes within a second, and nobody later.
func TestAnAnswerServesAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(questions)
		if answers, failed := q.together(t.Context(), 1000); answers[1] != 1000 || failed > 0 {
			t.Errorf("answers %v, %d failed, want the first one for all", answers, failed)
		}
		if answer, err := q.get(t.Context(), time.Time{}); answer != 1 || err != nil {
			t.Errorf("soon after: answer %d, %v, want the first one", answer, err)
		}
		time.Sleep(maxAge)
		if answer, err := q.get(t.Context(), time.Time{}); answer != 2 || err != nil {
			t.Errorf("a second later: answer %d, %v, want another one", answer, err)
		}
	})
}

// TestI4AnAnswerFromBeforeAFailureProvesNothing: the server may be another one since.
func TestI4AnAnswerFromBeforeAFailureProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(questions)
		if _, err := q.get(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if answer, err := q.get(t.Context(), time.Now()); answer != 2 || err != nil {
			t.Errorf("asked after a failure: answer %d, %v, want another one", answer, err)
		}
		done := make(chan int)
		go func() {
			answer, _ := q.get(t.Context(), time.Now().Add(-time.Hour))
			done <- answer
		}()
		time.Sleep(time.Second)
		<-done
		go func() { // under way when the failure comes
			answer, _ := q.get(t.Context(), time.Time{})
			done <- answer
		}()
		time.Sleep(50 * time.Millisecond)
		if answer, err := q.get(t.Context(), time.Now()); answer != 4 || err != nil {
			t.Errorf("asked while a request was under way: answer %d, %v, want another one", answer, err)
		}
		<-done
	})
}

// TestAFailureIsSharedByThoseWhoWaited, and by nobody later; one who gives up fails alone.
func TestAFailureIsSharedByThoseWhoWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &questions{fails: true}
		if _, failed := q.together(t.Context(), 1000); failed != 1000 || q.asked != 1 {
			t.Errorf("%d failed after %d requests, want all after one", failed, q.asked)
		}
		q.fails = false
		if answer, err := q.get(t.Context(), time.Time{}); answer != 2 || err != nil {
			t.Errorf("after a failure: answer %d, %v", answer, err)
		}
		time.Sleep(2 * maxAge)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		gaveUp := make(chan error)
		go func() {
			_, err := q.get(ctx, time.Time{})
			gaveUp <- err
		}()
		synctest.Wait()
		if answer, err := q.get(t.Context(), time.Time{}); answer != 4 || err != nil {
			t.Errorf("behind one who gave up: answer %d, %v, want one of its own", answer, err)
		}
		if err := <-gaveUp; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who gave up has %v", err)
		}
	})
}
