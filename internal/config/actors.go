package config

import "slices"

// checkActors checks that who is told of the users can be, and that somebody is.
func checkActors(k *checker, audit *Audit, sinks []Sink) {
	for i := range sinks {
		sinks[i].checkActors(k, item("sinks", i)+".actors", audit != nil)
	}
	told := slices.ContainsFunc(sinks, func(s Sink) bool { return s.Actors })
	if audit != nil && !told && len(sinks) > 0 {
		k.problem("audit", "no sink takes what it receives; set actors: true on one, or leave audit out")
	}
}

// checkActors checks that the sink can be told of the users. received says whether anything tells of them.
func (s *Sink) checkActors(k *checker, path string, received bool) {
	switch {
	case !s.Actors:
	case !received:
		k.problem(path, "needs audit, which receives them; add that, or leave actors out")
	case s.Format != "" && s.Format != Formats()[0]:
		k.problem(path, "a record of format: %s is an object, and has no place for a user; choose format: %s, or leave actors out", shorten(s.Format), Formats()[0])
	case s.NATS != nil && s.NATS.KV != "":
		k.problem(path, "a bucket holds the present state of each object, and no users; use a stream, or leave actors out")
	}
}
