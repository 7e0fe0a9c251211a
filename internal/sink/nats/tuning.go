package nats

import "time"

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

// mostUnderWay is how many messages wait for their acknowledgement at most.
const mostUnderWay = 1024

func defaultTuning() tuning {
	return tuning{
		reply: 5 * time.Second, outage: 5 * time.Second, dial: 5 * time.Second, flush: 10 * time.Second,
		ping: 15 * time.Second, look: 10 * time.Second, quiet: time.Second, pending: mostUnderWay, bytes: 8 << 20,
	}
}
