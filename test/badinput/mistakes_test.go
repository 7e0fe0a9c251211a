package badinput

import (
	"net"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

// TestTypicalMistakesAreAnswered: what somebody writes who has read the documents, once, and what exporter check says
// to it: what is wrong, where, and what to change. None is accepted silently.
func TestTypicalMistakesAreAnswered(t *testing.T) {
	d := withState(t)
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	bus := startBroker(t, func(o *natsserver.Options) { o.Username, o.Password = "me", password })
	c := brokers.Get(t)
	all := plays(t, "mistakes.txtar", "{address}", used.Addr().String(), "{bus}", bus.URL(), "{broker}", c.Brokers()[0], "{registry}", newRegistry(t))
	if c.Real() {
		all = append(all, plays(t, "kafkamistakes.txtar", "{plain}", c.Brokers()[0], "{tls}", c.BrokersAt(kafka.TLS)[0], "{sasl}", c.BrokersAt(kafka.SASL)[0])...)
	}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			d.configure(p)
			r := d.exporter(checking(p.args...)...)
			said := strings.ReplaceAll(r.Stdout+r.Stderr, d.dir, "DIR")
			accepted := r.Code == 0 && !strings.HasPrefix(p.want, "note ") && !strings.HasPrefix(p.want, "ok ")
			if accepted || !strings.Contains(said, p.want) {
				t.Errorf("exit code %d\n%s\nwant in it\n%s", r.Code, said, p.want)
			}
		})
	}
}
