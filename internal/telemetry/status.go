package telemetry

import "time"

// Status is the document at /statusz.
type Status struct {
	Version       string                 `json:"version"`
	Cluster       string                 `json:"cluster"`
	ClusterUID    string                 `json:"clusterUid"`
	UptimeSeconds float64                `json:"uptimeSeconds"`
	Healthy       bool                   `json:"healthy"`
	Ready         bool                   `json:"ready"`
	Problems      []string               `json:"problems,omitempty"`
	HA            *Leadership            `json:"ha,omitempty"`
	Streams       map[string]streamState `json:"streams"`
	Sinks         map[string]sinkState   `json:"sinks"`
	State         commitState            `json:"state"`
	Discovery     discoveryState         `json:"discovery"`
}

// countObjects returns how many objects of a stream a sink has; the caller holds mu.
func (t shown) countObjects(s *streamState, sinkName string) (int, error) {
	c, now := s.counts[sinkName], time.Now()
	if c != nil && (!c.vague || now.Sub(c.counted) < min(recount, recountPause*c.took)) {
		return c.n, nil
	}
	n, err := t.CountObjects(sinkName, s.stream)
	if err != nil {
		return 0, err
	}
	one := objectCount{n: n, counted: now, took: time.Since(now)}
	if c != nil {
		one.written, one.vague = c.written, now.Sub(c.written) < saved
	}
	s.counts[sinkName] = &one
	return n, nil
}

// Status is how things stand now.
func (t shown) Status() Status {
	t.look()
	now := time.Now()
	var log *StateLog
	if t.StateLog != nil {
		stands := t.StateLog()
		log = &stands
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	status := Status{
		Version: t.Version, Cluster: t.ClusterName, ClusterUID: t.ClusterUID, UptimeSeconds: now.Sub(t.started).Seconds(),
		Streams: map[string]streamState{}, Sinks: map[string]sinkState{}, State: t.states.commit,
		Discovery: t.states.discovery,
	}
	status.State.Log = log
	if t.Leadership != nil {
		leads := t.Leadership()
		status.HA = &leads
	}
	for name, s := range t.states.streams {
		shown := *s
		shown.State = s.standing()
		shown.PositionAgeSeconds = age(now, s.confirmed)
		shown.HistorySeconds = s.history(now, s.oldest()).Seconds()
		shown.HistoryLeftSeconds = s.historyLeft(now, s.oldest()).Seconds()
		if shown.HeldBy = s.holders(now); shown.HeldBy != nil {
			shown.HeldSince = s.oldest()
		}
		shown.Sinks = s.aged(now)
		status.Streams[name] = shown
	}
	for name, s := range t.states.sinks {
		shown := *s
		shown.OldestUnackedSeconds = age(now, s.oldest)
		shown.FailingSince = s.outage.began
		status.Sinks[name] = shown
	}
	status.Problems = t.states.unhealthy(now)
	status.Healthy, status.Ready = len(status.Problems) == 0, len(unready(t.checks())) == 0
	return status
}

// Settled says whether every sink is open and no stream that is served starts or is being reconciled.
func (t shown) Settled() bool {
	t.look()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.states.streams {
		if state := s.standing(); state == starting || state == snapshotting {
			return false
		}
	}
	return len(unready(t.checks())) == 0
}
