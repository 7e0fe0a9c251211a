package config

import "strings"

// Signals are the topics by which others ask, and are told what becomes of it. Both names may have {cluster} in them.
type Signals struct {
	Topic         string `key:"topic" default:"kubecdc-signals"`
	Notifications string `key:"notifications"`
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
