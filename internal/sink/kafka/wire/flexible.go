package wire

import (
	"io"

	"github.com/segmentio/kafka-go/protocol"
)

// talkFlexible sends a request of a flexible version (KIP-482) that kafka-go does not know. Where the broker does not
// know it either, it returns the answer to ApiVersions instead.
func (l *link) talkFlexible(rw io.ReadWriter, api protocol.ApiKey, version int16, question output) (protocol.Message, error) {
	serial := l.serial.Add(1)
	out := header(protocol.ApiVersions, 0, serial, l.options.ClientID)
	out.finish(0)
	if _, err := rw.Write(out); err != nil {
		return nil, err
	}
	versions, err := readFrame(rw, protocol.ApiVersions, serial)
	if err != nil || !knows(versions.(*frame).body, api, version) {
		return versions, err
	}
	serial = l.serial.Add(1)
	out = append(header(api, version, serial, l.options.ClientID).int8(0), question...) // no tags
	out.finish(0)
	if _, err := rw.Write(out); err != nil {
		return nil, err
	}
	return readFrame(rw, api, serial)
}

// knows reads an answer to ApiVersions, version 0.
func knows(body []byte, wanted protocol.ApiKey, version int16) bool {
	in := &input{rest: body}
	in.int16() // error
	for range in.count(6) {
		api, _, most := in.int16(), in.int16(), in.int16()
		if api == int16(wanted) {
			return in.err == nil && most >= version
		}
	}
	return false
}
