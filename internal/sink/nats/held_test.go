package nats

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// keyed are n messages of a bucket, each of a key of its own from first on.
func keyed(first, n int) []sink.Message {
	batch := newMaker().Batch(n)
	for i := range batch {
		batch[i].Destination, batch[i].Op = fmt.Sprintf("$KV.NOW.pods.%d", first+i), "updated"
	}
	return batch
}

// TestI4PurgeBehindWhichSomethingWasWritten is found by the next open, and by the running sink.
func TestI4PurgeBehindWhichSomethingWasWritten(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Options)
		purge  []jetstream.StreamPurgeOpt
		lost   bool
	}{
		{"a stream", nil, nil, true},
		{"a part of a stream", nil, []jetstream.StreamPurgeOpt{jetstream.WithPurgeKeep(5)}, true},
		{"a subject", nil, []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject("k8s.x")}, true},
		{"a stream of an age", func(o *Options) { o.MaxAge = time.Hour }, nil, true},
		{"a stream of a size", func(o *Options) { o.MaxBytes = 1 << 20 }, nil, false}, // looks as if it was full
		{"a bucket", func(o *Options) { o.Stream, o.Subjects, o.KV = "", nil, "NOW" }, nil, true},
		{"a part of a bucket", func(o *Options) { o.Stream, o.Subjects, o.KV = "", nil, "NOW" }, []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject("$KV.NOW.pods.7")}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServer(t)
			options := s.options()
			if test.change != nil {
				test.change(&options)
			}
			messages := func(first, n int) []sink.Message {
				if options.KV != "" {
					return keyed(first, n)
				}
				return newMaker().Batch(n)
			}
			running := newSink(t, options)
			opened := func(mark sink.Mark) error {
				_, err := sinktest.Open(within(t), newSink(t, options), mark)
				return err
			}
			var lost *sink.LostError
			openAt(t, running, "")
			write(t, running, messages(0, 20))
			running.looked = time.Time{}
			write(t, running, nil)
			if err := opened(running.stream.place.text()); err != nil {
				t.Fatalf("before the purge: %v", err)
			}
			js, ctx := s.admin()
			noError(t, must(js.Stream(ctx, running.options.Stream)).Purge(ctx, test.purge...))
			mark := running.stream.place.text()
			if err := opened(mark); len(test.purge) == 0 && !errors.As(err, &lost) {
				t.Fatalf("emptied: got %v", err)
			}
			if options.KV == "" { // which is looked at before each write
				mark = write(t, running, messages(100, 1))
			}
			if err := opened(mark); errors.As(err, &lost) != test.lost || err != nil && !test.lost {
				t.Fatalf("open: got %v, want lost: %t", err, test.lost)
			}
			running.looked = time.Time{}
			_, err := running.Write(within(t), messages(200, 1))
			if (err != nil) != test.lost {
				t.Fatalf("a running sink: got %v, want lost: %t", err, test.lost)
			}
			if !test.lost {
				return
			}
			if _, err := sinktest.Open(within(t), running, mark); !errors.As(err, &lost) {
				t.Fatalf("opened again: got %v", err)
			}
			if err := opened(write(t, running, messages(0, 3))); err != nil { // told once
				t.Fatalf("behind the loss: %v", err)
			}
		})
	}
}

// TestI4APurgeDuringAWriteIsFound by the next look, and by the next open.
func TestI4APurgeDuringAWriteIsFound(t *testing.T) {
	s, network, options := proxied(t)
	options.Stream, options.Subjects, options.KV = "", nil, "NOW"
	running := openSink(t, options)
	write(t, running, keyed(0, 20))
	batch := keyed(100, 2)
	network.holdBehind(batch[0].ID + "\r\n")
	ctx, written := within(t), make(chan sink.Mark)
	go func() {
		mark, err := running.Write(ctx, batch)
		if err != nil {
			t.Error(err)
		}
		written <- mark
	}()
	network.awaitHeld(batch[1].ID + "\r\n")
	js, adminCtx := s.admin()
	noError(t, must(js.Stream(adminCtx, running.options.Stream)).Purge(adminCtx, jetstream.WithPurgeSubject("$KV.NOW.pods.*")))
	network.release(t)
	mark := <-written
	if _, err := sinktest.Open(ctx, newSink(t, options), mark); !errors.As(err, new(*sink.LostError)) {
		t.Errorf("the next open: got %v", err)
	}
	if _, err := running.Write(ctx, keyed(200, 1)); err == nil {
		t.Error("the next Write goes on")
	}
}

// TestI4WhatALimitTookIsNotLost, nor is a key that was written again.
func TestI4WhatALimitTookIsNotLost(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	info := func(change func(*jetstream.StreamInfo)) *jetstream.StreamInfo {
		i := &jetstream.StreamInfo{TimeStamp: at.Add(time.Minute), State: jetstream.StreamState{Msgs: 10, FirstSeq: 91, LastSeq: 100, LastTime: at, NumSubjects: 7}}
		change(i)
		return i
	}
	before := &held{Gone: 0, Keys: 7, Last: 50, Time: at}
	for name, test := range map[string]struct {
		change func(*jetstream.StreamInfo)
		lost   bool
	}{
		"no limit":               {func(*jetstream.StreamInfo) {}, true},
		"emptied":                {func(i *jetstream.StreamInfo) { i.State.Msgs, i.State.FirstSeq = 0, 101 }, true},
		"emptied, of a size":     {func(i *jetstream.StreamInfo) { i.State.Msgs, i.State.FirstSeq, i.Config.MaxBytes = 0, 101, 10 }, true},
		"emptied, younger":       {func(i *jetstream.StreamInfo) { i.State.Msgs, i.State.FirstSeq, i.Config.MaxAge = 0, 101, time.Hour }, true},
		"emptied by age":         {func(i *jetstream.StreamInfo) { i.State.Msgs, i.State.FirstSeq, i.Config.MaxAge = 0, 101, time.Minute }, false},
		"age":                    {func(i *jetstream.StreamInfo) { i.Config.MaxAge = time.Minute }, false},
		"younger":                {func(i *jetstream.StreamInfo) { i.Config.MaxAge = time.Hour }, true},
		"number":                 {func(i *jetstream.StreamInfo) { i.Config.MaxMsgs = 10 }, false},
		"larger number":          {func(i *jetstream.StreamInfo) { i.Config.MaxMsgs = 51 }, true},
		"size":                   {func(i *jetstream.StreamInfo) { i.Config.MaxBytes = 10 }, false},
		"lives of messages":      {func(i *jetstream.StreamInfo) { i.Config.AllowMsgTTL = true }, false},
		"age or number":          {func(i *jetstream.StreamInfo) { i.Config.MaxAge, i.Config.MaxMsgs = time.Hour, 10 }, false},
		"a bucket":               {func(i *jetstream.StreamInfo) { i.Config.MaxMsgsPerSubject = 1 }, false},
		"a bucket that has less": {func(i *jetstream.StreamInfo) { i.Config.MaxMsgsPerSubject, i.State.NumSubjects = 1, 6 }, true},
		"a bucket that ages": {func(i *jetstream.StreamInfo) {
			i.Config.MaxMsgsPerSubject, i.State.NumSubjects, i.Config.MaxAge = 1, 6, time.Hour
		}, false},
	} {
		if missing := before.missing(info(test.change), 100, 0); (missing != "") != test.lost {
			t.Errorf("%s: %q is missing, want lost: %t", name, missing, test.lost)
		}
	}
	var unknown *held
	if missing := unknown.missing(info(func(*jetstream.StreamInfo) {}), 100, 0); missing != "" {
		t.Errorf("a mark of an older version: %s", missing)
	}
}
