package task

import (
	"context"
	"errors"
	"time"

	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/statelog"
	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// Term is the time in which this member leads a task. nil is that of an exporter alone, which ends with the process.
type Term struct {
	claimant statelog.Claimant
	duration time.Duration               // of the Lease
	end      func(cause error)           // ends it
	over     context.Context             // ends with it, but not with a stop of the process
	status   func() telemetry.Leadership // who leads
}

// patience is how long the brokers may take to let this member lead.
func (t *Term) patience() time.Duration { return max(t.duration, 10*time.Second) }

// Lost ends when another member delivers what this one has not, nil is never.
func (t *Term) Lost() context.Context {
	if t == nil {
		return nil
	}
	return t.over
}

// Observe ends the term when a sink says that it is another's.
func (t *Term) Observe(o pipeline.Observer) pipeline.Observer {
	if t == nil {
		return o
	}
	told := o.Stopped
	o.Stopped = func(name string, err error) {
		told(name, err)
		if isFenced(err) {
			t.end(err)
		}
	}
	return o
}

// isFenced says whether another exporter has taken over what this one wrote to.
func isFenced(err error) bool {
	var refused *sink.PermanentError
	return errors.As(err, &refused) && refused.Fenced
}

// Standing is who leads, nil of an exporter alone.
func (t *Term) Standing() func() telemetry.Leadership {
	if t == nil {
		return nil
	}
	return t.status
}
