package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	rate   = 50               // changes a second, while something fails
	up     = 10 * time.Second // between two kills
	down   = 2 * time.Second  // from the kill to the start
	paused = 30 * time.Second // the broker
	calm   = 20 * time.Second // no record for so long is the end of a run
)

// outages kills both programs, again and again.
func (c *course) outages(ctx context.Context, both *pair) error {
	return c.during(ctx, both, func() error {
		for range c.kills {
			time.Sleep(up)
			both.kill()
			time.Sleep(down)
			if err := both.start(); err != nil {
				return err
			}
		}
		time.Sleep(up)
		return nil
	})
}

// pause stops the broker for a while, as SIGSTOP does.
func (c *course) pause(ctx context.Context, both *pair) error {
	return c.during(ctx, both, func() error {
		time.Sleep(up)
		if err := c.broker.Pause(1); err != nil {
			return err
		}
		time.Sleep(paused)
		err := c.broker.Resume(1)
		time.Sleep(up)
		return err
	})
}

// during makes changes while the faults happen, and counts those that were missed, told twice or told late.
func (c *course) during(ctx context.Context, both *pair, faults func() error) error {
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var made map[string]time.Time
	var failed error
	var writer sync.WaitGroup
	writer.Go(func() { made, failed = c.change(writing) })
	err := faults()
	stop()
	writer.Wait()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if err := both.settle(ctx); err != nil {
		return err
	}
	for _, p := range both.programs {
		c.judge(p, made)
	}
	return nil
}

// judge counts what the topic says of the changes.
func (c *course) judge(p *program, made map[string]time.Time) {
	var missed, deletes int
	for key := range made {
		if p.told.count(key) > 0 {
			continue
		}
		missed++
		if isDelete(key) {
			deletes++
		}
	}
	twice, late := p.told.repeated()
	part := p.part + "_"
	c.note(p, part+"changes", float64(len(made)), "changes")
	c.note(p, part+"missed", float64(missed), "changes")
	c.note(p, part+"missed_deletes", float64(deletes), "changes")
	c.note(p, part+"told_twice", float64(twice), "records")
	c.note(p, part+"behind_a_newer", float64(late), "records")
}
