package config

import (
	"net"
	"slices"
	"strconv"
	"strings"
)

// checkActors checks that who is told of the users can be, and that somebody is.
func checkActors(k *checker, audit *Audit, sinks []Sink) {
	told := false
	for i := range sinks {
		s, path := &sinks[i], item("sinks", i)+".actors"
		told = told || s.Actors
		switch {
		case !s.Actors:
		case audit == nil:
			k.problem(path, "needs audit, which receives them; add that, or leave actors out")
		case s.Format != "" && s.Format != Formats()[0]:
			k.problem(path, "a record of format: %s is an object, and has no place for a user; choose format: %s, or leave actors out", shorten(s.Format), Formats()[0])
		case s.NATS != nil && s.NATS.KV != "":
			k.problem(path, "a bucket holds the present state of each object, and no users; use a stream, or leave actors out")
		}
	}
	k.problemIf(audit != nil && !told && len(sinks) > 0, "audit",
		"no sink takes what it receives; set actors: true on one, or leave audit out")
}

// Audit is where the API server's audit webhook is received.
type Audit struct {
	Listen   string    `key:"listen" need:"an address such as :9443"`
	TLS      ServerTLS `key:"tls"`
	ClientCA string    `key:"clientCA" need:"a file in PEM with the certificates that may have signed a sender's"`
}

// ServerTLS is what a server shows of itself. Both are files in PEM, and read for every connection.
type ServerTLS struct {
	Cert string `key:"cert"`
	Key  string `key:"key"`
}

// check checks the address, which is not the one of listen, and the certificates.
func (a *Audit) check(k *checker, listen string) {
	switch {
	case a.Listen == "": // which is missing
	case !isListenAddress(a.Listen):
		k.problem("audit.listen", "want an address such as :9443 or 127.0.0.1:9443, have %q", shorten(a.Listen))
	case a.Listen == listen && listen != "127.0.0.1:0":
		k.problem("audit.listen", "%q is the address of listen already; give it one of its own", shorten(a.Listen))
	}
	k.problemIf(a.TLS.Cert == "" || a.TLS.Key == "", "audit.tls",
		"want cert and key, files in PEM with the certificate that the API server is shown, and with its private key")
}

// isListenAddress says whether a server can listen there: HOST:PORT, or :PORT for every host.
func isListenAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// IsKept says whether the entry's objects are kept as they were told last.
func (r *Resource) IsKept() bool { return r.Before || len(r.Ignore) > 0 }

// isEvents says whether the name stands for Events, as kubectl takes it: events, ev, events.events.k8s.io.
func isEvents(name string) bool {
	plural, group, _ := strings.Cut(name, ".")
	if !slices.Contains([]string{"events", "event", "ev"}, plural) {
		return false
	}
	return group == "" || group == "v1" || group == "events.k8s.io" || strings.HasSuffix(group, ".events.k8s.io")
}

// Involvable are the entries of whose objects an Event may tell: those that are kept.
func Involvable(resources []Resource) (involvable []*Resource) {
	for i := range resources {
		if r := &resources[i]; r.IsKept() && !isEvents(r.Name) {
			involvable = append(involvable, r)
		}
	}
	return involvable
}

// checkInvolved checks that something is known of what Events are about, and that no Event tells a sink of an object
// that the sink may not see.
func checkInvolved(k *checker, resources []Resource, sinks []Sink) {
	kept := Involvable(resources)
	for i := range resources {
		path, events := item("resources", i)+".involved", &resources[i]
		switch {
		case len(events.Involved) == 0:
			continue
		case !isEvents(events.Name):
			k.problem(path, "an object of %s is about no other one; leave it out, or put it at events", shorten(events.Name))
			continue
		case len(kept) == 0:
			k.problem(path, "no object is kept that an Event could be about; add before: true to its resource, such as pods, or leave it out")
		}
		for j := range sinks {
			if s := &sinks[j]; s.takes(events.Name) || slices.ContainsFunc(s.Resources, isWildcard) {
				s.checkInvolved(k, item("sinks", j), kept)
			}
		}
	}
}

// checkInvolved checks a sink that takes the Events. It must take the objects of all kept entries, each as its entry
// leaves it: a sink's cuts apply to what an Event tells, too, but nobody knows whether a filter would have let the
// object pass that an Event is about.
func (s *Sink) checkInvolved(k *checker, path string, kept []*Resource) {
	const orLeave = ", or leave involved out of the events"
	for _, r := range kept {
		k.problemIf(!s.takes(r.Name), path+".resources",
			"its events would tell it of %s, which it does not take; add %s%s", shorten(r.Name), shorten(r.Name), orLeave)
	}
	k.problemIf(s.Filter != "", path+".filter",
		"its events would tell it of objects that the filter leaves out; put the filter at the resources%s", orLeave)
	k.problemIf(len(s.Ops) > 0 && !(slices.Contains(s.Ops, "added") && slices.Contains(s.Ops, "updated")), path+".ops",
		"its events would tell it of objects that it is not told of; add added and updated%s", orLeave)
}
