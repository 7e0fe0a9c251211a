package main

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
)

// appendRole is the process that appends and syncs.
const appendRole = "append"

// appendSpec is how much, of how many events.
type appendSpec struct {
	Path   string
	Bytes  int64
	Events int
}

// appendBatch is how many bytes are written before each sync, as many as the exporter gives a sink at once.
const appendBatch = 4 << 20

func appendAlone(_ context.Context, text json.RawMessage, reply func(any) error) error {
	var spec appendSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	data := make([]byte, appendBatch)
	if _, err := rand.NewChaCha8([32]byte{1}).Read(data); err != nil {
		return err
	}
	before, err := harness.UsageOf(os.Getpid())
	if err != nil {
		return err
	}
	began := time.Now()
	if err := appendTo(spec.Path, data, spec.Bytes); err != nil {
		return err
	}
	after, err := harness.UsageOf(os.Getpid())
	if err != nil {
		return err
	}
	return reply(harness.Measured{
		Events: spec.Events, CPU: max(after.CPU-before.CPU, 10*time.Millisecond), Wall: time.Since(began), PeakRSS: after.PeakRSS,
	})
}

func appendTo(path string, data []byte, left int64) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for left > 0 {
		n, err := file.Write(data[:min(left, int64(len(data)))])
		if err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}
