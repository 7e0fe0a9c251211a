package kafka

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// chosen are the topics that nobody has named: data chose them, by an object's label, namespace or name, or by a
// definition that a wildcard stands for, which is one of Options.Found in the next life. Whoever may make such objects
// must not be able to end the sink: what speaks against the topic is held against the messages alone.
type chosen struct {
	*brokers
	known *known

	mu     sync.Mutex           // guards the following
	shut   map[string]objection // those that cannot be written to
	making map[string]bool      // those that this sink has made
	full   bool                 // it was told that no more are made
}

// objection is why a topic cannot be written to, and since when that is known.
type objection struct {
	err   error
	since time.Time
}

// mostClosed bounds how many of them are remembered.
const mostClosed = 1000

// has says whether data chose the topic.
func (c *chosen) has(name string) bool {
	return !c.isForetold(name) || slices.Contains(c.options.Found, name)
}

// isForetold says whether Open makes the topic, which does not count as one of a label.
func (c *chosen) isForetold(name string) bool { return slices.Contains(c.options.Topics, name) }

// close remembers what speaks against a topic, for a moment: looking again costs some requests.
func (c *chosen) close(name string, err error) *refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.shut) >= mostClosed {
		clear(c.shut)
	}
	c.shut[name] = objection{err, c.now()}
	return refusalOf(err)
}

func refusalOf(err error) *refusal { return &refusal{reason: "topic", err: err, noPlace: true} }

// refusal is what speaks against a topic, nil where nothing is known.
func (c *chosen) refusal(name string) *refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	shut, known := c.shut[name]
	if !known || c.now().Sub(shut.since) > c.tuning.closed {
		return nil
	}
	return refusalOf(shut.err)
}

// forbidden turns an error of a request about a topic that data chose into one that Open answers: the next Write
// rejects what is meant for the topic. Other errors stay as they are.
func (c *chosen) forbidden(name string, err error) error {
	if err == nil || name == "" || !refusesTopic(err) || !c.has(name) {
		return err
	}
	c.close(name, err)
	return reopen("%v: open the sink again", err) // not wrapped: it is not permanent
}

// admit says whether one more topic may be made because data chose it.
func (c *chosen) admit(name string) error {
	if c.isForetold(name) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	most := c.options.LabelTopics
	if most == 0 || c.known.made() < most {
		c.making[name] = true
		return nil
	}
	if !c.full {
		c.full = true
		c.options.Notice(fmt.Sprintf("has created %d topics for labels and names, as many as kafka.labelTopics allows: records for further topics become dead letters", most))
	}
	return topicPermanent("open topic %s: it does not exist, and labels and names have made %d topics already: create it, or raise kafka.labelTopics", name, most)
}

// isMade says whether this sink has made the topic, as far as it remembers.
func (c *chosen) isMade(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.making[name]
}
