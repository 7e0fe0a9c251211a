package wire

import (
	"errors"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/protocol"
)

// anyBroker is the destination of requests that every broker answers.
const anyBroker int32 = -1

var (
	errNoBrokers     = errors.New("no broker has been reached yet")
	errUnknownBroker = errors.New("the broker is not in the list of brokers yet")
)

// exchange is one request and its answer on a connection of the transport. It chooses the broker itself, where
// the transport would look leaders up in a cache that nothing but time renews.
type exchange struct {
	api     protocol.ApiKey
	broker  int32
	version int16 // the newest that the broker and kafka-go have in common
	known   bool  // to the broker
	talk    func(rw io.ReadWriter, version int16) (protocol.Message, error)
}

func (e *exchange) ApiKey() protocol.ApiKey { return e.api }

// Broker implements protocol.BrokerMessage.
func (e *exchange) Broker(cluster protocol.Cluster) (protocol.Broker, error) {
	if len(cluster.Brokers) == 0 {
		return protocol.Broker{}, errNoBrokers
	}
	if e.broker == anyBroker {
		return protocol.Broker{ID: anyBroker}, nil
	}
	broker, known := cluster.Brokers[e.broker]
	if !known {
		return protocol.Broker{}, fmt.Errorf("broker %d: %w", e.broker, errUnknownBroker)
	}
	return broker, nil
}

// Required implements protocol.RawExchanger.
func (e *exchange) Required(versions map[protocol.ApiKey]int16) bool {
	e.version, e.known = versions[e.api]
	return true
}

// RawExchange implements protocol.RawExchanger.
func (e *exchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if !e.known {
		return nil, &Error{Code: codeUnsupportedVersion, Request: "send " + e.api.String(), Message: "the broker does not know this request"}
	}
	answer, err := e.talk(rw, e.version)
	if err != nil {
		return nil, err
	}
	return &reply{e.api, answer}, nil
}

// reply hides an answer from the transport, which looks into some of those that it knows: it would wait until a topic
// that was created comes up in its own list, which has none.
type reply struct {
	api    protocol.ApiKey
	answer protocol.Message
}

func (r *reply) ApiKey() protocol.ApiKey { return r.api }
