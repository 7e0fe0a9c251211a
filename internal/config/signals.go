package config

import "strings"

// Signals are the topics by which others ask, and are told what becomes of it. Both names may have {cluster} in them.
type Signals struct {
	Topic         string
	Notifications string // "" is that nobody is told
}

func (s *Signals) keys() []key {
	return []key{
		{"topic", textOr(&s.Topic, "kubecdc-signals"),
			"The topic that signals are read from. The key of a signal is the cluster's name, so several clusters can share one."},
		{"notifications", text(&s.Notifications),
			"A topic for Debezium's notifications of how the snapshots that were asked for go on. Without it, none are sent."},
	}
}

func (s *Signals) check(k *checker, path string) {
	checkFixedTopic(k, under(path, "topic"), s.Topic)
	if s.Notifications == "" {
		return
	}
	checkFixedTopic(k, under(path, "notifications"), s.Notifications)
}

// checkFixedTopic checks the name of a topic that no record chooses.
func checkFixedTopic(k *checker, path, name string) {
	literal := strings.ReplaceAll(name, "{cluster}", "x")
	if strings.ContainsAny(literal, "{}") {
		k.problem(path, "%q: the only placeholder here is {cluster}", shorten(name))
	} else if err := checkTopic(literal); err != nil {
		k.problem(path, "%v", err)
	}
}
