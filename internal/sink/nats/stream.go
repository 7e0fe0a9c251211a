package nats

import "github.com/nats-io/nats.go/jetstream"

// knownStream is the stream as this sink knows it.
type knownStream struct {
	name       string
	place      mark // after the last message that is known to be stored
	subjects   []string
	keys       string   // of a bucket: what its subjects start with
	shared     bool     // others write to it, too
	told       tellings // of one that is shared
	maxMessage int      // bytes of headers and value; negative is no limit
	maxSubject int      // characters
	mode       publishMode
	confirmed  bool // a message was acknowledged since the sink was opened
}

func newStream(info *jetstream.StreamInfo) knownStream {
	s := knownStream{name: info.Config.Name, place: markOf(info)}
	s.renew(&info.Config)
	return s
}

// renew takes what a person can change meanwhile.
func (s *knownStream) renew(config *jetstream.StreamConfig) {
	s.subjects, s.maxMessage = config.Subjects, int(config.MaxMsgSize)
}
