package file

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// childEnv makes the test binary a child of the named kind.
const childEnv = "KUBECDC_FILE_TEST_CHILD"

// order tells the child where it stands; ack is what it answers for each batch that Write acknowledged.
type order struct {
	Path     string
	MaxBytes int64
	Mark     sink.Mark
	Known    int // how many messages are before Mark
}

type ack struct {
	Mark    sink.Mark
	Written int
	Found   []string `json:",omitempty"`
}

// runChild is what TestMain runs in the child instead of tests.
func runChild(kind string) int {
	var err error
	switch kind {
	case "append":
		err = appendForever()
	case "stdout":
		err = writeToBrokenPipe()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	return 0
}

func appendForever() error {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return err
	}
	s := New(Options{Path: o.Path, MaxBytes: o.MaxBytes})
	out := json.NewEncoder(os.Stdout)
	found, err := sinktest.Open(context.Background(), s, o.Mark)
	if err != nil {
		return err
	}
	maker := sinktest.Maker{}
	maker.Batch(o.Known + len(found))
	if err := out.Encode(ack{Mark: o.Mark, Written: o.Known + len(found), Found: found}); err != nil {
		return err
	}
	for written := o.Known + len(found); ; {
		batch := maker.Batch(1 + rand.IntN(40))
		mark, err := s.Write(context.Background(), batch)
		if err != nil {
			return err
		}
		written += len(batch)
		if err := out.Encode(ack{Mark: mark, Written: written}); err != nil {
			return err
		}
	}
}

// The parent is the checkpoint: it remembers one of the marks that came over the pipe before the kill.
func TestI1NothingAcknowledgedIsLostByKill(t *testing.T) {
	for _, maxBytes := range []int64{0, 20_000} {
		t.Run(fmt.Sprint("rotated at ", maxBytes), func(t *testing.T) { killAndGoOn(t, maxBytes) })
	}
}

func killAndGoOn(t *testing.T, maxBytes int64) {
	path := t.TempDir() + "/changes.ndjson"
	first := newTestLog(t, Options{Path: path}, nil)
	if _, err := sinktest.Open(t.Context(), first, ""); err != nil {
		t.Fatal(err)
	}
	mark, err := first.Write(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	saved, acked := ack{Mark: mark}, 0
	for range 20 {
		acks := runAndKill(t, order{Path: path, MaxBytes: maxBytes, Mark: saved.Mark, Known: saved.Written}, acked)
		acks = append([]ack{saved}, acks...)
		saved, acked = acks[rand.IntN(len(acks))], max(acked, acks[len(acks)-1].Written)
	}
	maker := sinktest.Maker{}
	all := stored(t, path)
	if n := len(all); n > 0 && !json.Valid(all[n-1].Value) {
		all = all[:n-1] // the line that the last kill tore
	}
	if len(all) < acked || acked < 20 {
		t.Fatalf("%d lines, of which %d were acknowledged", len(all), acked)
	}
	for i, want := range maker.Batch(len(all)) {
		if string(all[i].Value) != string(want.Value) {
			t.Fatalf("line %d is %.200q, not %.200q", i, all[i].Value, want.Value)
		}
	}
}

// runAndKill runs a child for a while and returns what it acknowledged.
func runAndKill(t *testing.T, o order, acked int) []ack {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childEnv+"=append")
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(in).Encode(o); err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(out)
	var opened ack
	if err := answers.Decode(&opened); err != nil {
		t.Fatalf("the child did not open the file: %v", err)
	}
	timer := time.AfterFunc(rand.N(60*time.Millisecond), func() { _ = child.Process.Kill() })
	defer timer.Stop()
	acks := readAcks(answers)
	_ = child.Wait() // "signal: killed"
	checkFound(t, opened.Found, o.Known, acked)
	return acks
}

// readAcks reads to the end, which the kill may have put into the middle of an answer.
func readAcks(answers *json.Decoder) []ack {
	var acks []ack
	for {
		var a ack
		if answers.Decode(&a) != nil {
			return acks
		}
		acks = append(acks, a)
	}
}

// checkFound is the heart of the redo log: what is found after the mark is what comes next, without a hole, and all
// that was acknowledged is there.
func checkFound(t *testing.T, found []string, from, acked int) {
	t.Helper()
	if from+len(found) < acked {
		t.Fatalf("%d messages were acknowledged, %d are there", acked, from+len(found))
	}
	maker := sinktest.Maker{}
	maker.Batch(from)
	for i, want := range maker.Batch(len(found)) {
		if found[i] != want.ID {
			t.Fatalf("id %d behind the mark is %s, not %s", i, found[i], want.ID)
		}
	}
}
