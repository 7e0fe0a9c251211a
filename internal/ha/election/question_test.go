package election

import (
	"context"
	"testing"
	"time"
)

// TestAHolderThatAsksHearsOfAnotherThatCanWrite, keeps the Lease meanwhile, and leaves no question behind.
func TestAHolderThatAsksHearsOfAnotherThatCanWrite(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, first *candidate, term context.Context) {
		second, third := s.join(t, "second", "bus"), s.join(t, "third", "bus")
		defer second.leave()
		defer third.leave()
		heard := make(chan string)
		go func() {
			by, err := first.Ask(t.Context())
			if err != nil {
				t.Error(err)
			}
			heard <- by
		}()
		time.Sleep(2 * time.Second)
		question := second.Question()
		if question == "" || third.Question() != question || first.Question() != "" {
			t.Fatalf("the question is %q, %q, %q", first.Question(), second.Question(), third.Question())
		}
		for _, c := range []*candidate{second, third} {
			must(t, c.Answer(t.Context(), question))
		}
		if by := <-heard; by != "second_1" {
			t.Errorf("it heard of %q", by)
		}
		time.Sleep(2 * time.Second)
		if err := second.Answer(t.Context(), question); err != nil {
			t.Error(err)
		}
		if left := s.annotations(); left[asks]+left[answers] != "" || second.Question() != "" || term.Err() != nil {
			t.Errorf("behind the answer the Lease has %v, and the term ended with %v", left, term.Err())
		}
	})
}

// TestAQuestionThatNobodyAnswersEnds with its context, and the holder goes on.
func TestAQuestionThatNobodyAnswersEnds(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, first *candidate, term context.Context) {
		second := s.join(t, "second", "bus")
		defer second.leave()
		bounded, cancel := context.WithTimeout(t.Context(), duration)
		defer cancel()
		if by, err := first.Ask(bounded); by != "" || err == nil {
			t.Errorf("it heard of %q, %v", by, err)
		}
		time.Sleep(2 * duration)
		if term.Err() != nil || second.Question() != "" {
			t.Errorf("the term ended with %v, and the question is %q", term.Err(), second.Question())
		}
	})
}

// TestAQuestionIsForgottenWithItsHolder: who takes over has asked nothing.
func TestAQuestionIsForgottenWithItsHolder(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, first *candidate, _ context.Context) {
		second := s.join(t, "second", "bus")
		defer second.leave()
		asking, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			first.Ask(asking)
		}()
		time.Sleep(2 * time.Second)
		first.cut.Store(true)
		stop()
		<-done
		second.leads(t)
		if left := s.annotations(); left[asks]+left[answers] != "" {
			t.Errorf("the next holder's Lease has %v", left)
		}
	})
}

func (s *server) annotations() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of["a"].Annotations
}
