package app

import (
	"context"
	"errors"
	"time"

	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/statelog"
	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// term is the time in which this member leads a task. nil is that of an exporter alone, which ends with the process.
type term struct {
	claimant statelog.Claimant
	duration time.Duration               // of the Lease
	end      func(cause error)           // ends it
	over     context.Context             // ends with it, but not with a stop of the process
	status   func() telemetry.Leadership // who leads
}

// patience is how long the brokers may take to let this member lead.
func (t *term) patience() time.Duration { return max(t.duration, 10*time.Second) }

// lost ends when another member delivers what this one has not, nil is never.
func (t *term) lost() context.Context {
	if t == nil {
		return nil
	}
	return t.over
}

// observe ends the term when a sink says that it is another's.
func (t *term) observe(o pipeline.Observer) pipeline.Observer {
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

// standing is who leads, nil of an exporter alone.
func (t *term) standing() func() telemetry.Leadership {
	if t == nil {
		return nil
	}
	return t.status
}
