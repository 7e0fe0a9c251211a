package nats

import (
	"context"
	"math"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// tuning is what tests turn down.
type tuning struct {
	reply   time.Duration // without any answer for so long, an attempt has failed
	outage  time.Duration // how often Retry is told that there is still no connection
	dial    time.Duration
	flush   time.Duration // a socket that takes nothing for so long is dead
	ping    time.Duration
	look    time.Duration // how often a stream is compared with what it held, while something is written
	quiet   time.Duration // a stream that stays as it is for so long has taken all that was on its way
	pending int           // messages that may wait for their acknowledgement
	bytes   int           // and their bytes; the server's own queue of a stream takes 128 MiB
}

func defaultTuning() tuning {
	return tuning{
		reply: 5 * time.Second, outage: 5 * time.Second, dial: 5 * time.Second, flush: 10 * time.Second,
		ping: 15 * time.Second, look: 10 * time.Second, quiet: time.Second, pending: 1024, bytes: 8 << 20,
	}
}

func (s *Sink) connect(ctx context.Context) (*conn.Conn, error) {
	o, t := &s.options, &s.tuning
	return conn.Dial(ctx, &conn.Options{
		URL: o.URL, Servers: o.servers(), Name: o.Name, Domain: o.Domain, InboxPrefix: o.InboxPrefix, Login: o.Login, Extra: o.Extra,
		Timing:  conn.Timing{Reply: t.reply, Outage: t.outage, Dial: t.dial, Flush: t.flush, Ping: t.ping},
		Replies: 4 * t.pending, // those of an attempt that was given up come, too
	})
}

// alive is the connection, or a new one if the end of a context hit the last Write when all of it was stored already.
func (s *Sink) alive(ctx context.Context) (*conn.Conn, error) {
	if s.conn.Usable() {
		return s.conn, nil
	}
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	s.shut(ctx)
	s.conn, s.generation = c, math.MaxUint64 // none
	return c, nil
}
