package wire

import (
	"testing"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kubecdc/kubecdc/test/kafka"
)

func TestIdentityOfATopic(t *testing.T) {
	real := secured.Get(t)
	c := open(t, Options{Brokers: real.Brokers()})
	topic := made(t, c, 2, nil)
	first, err := c.Identity(t.Context(), topic)
	if err != nil || len(first.ID) != 32 || first.Operations.Lacks(Write) || first.Operations.Lacks(Read) {
		t.Fatalf("got %+v, %v; want an id and all operations", first, err)
	}
	again, err := c.Identity(t.Context(), topic)
	if err != nil || again.ID != first.ID {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	real.DeleteTopic(t, topic)
	if _, err := c.Identity(t.Context(), topic); Code(err) != codeUnknownTopic {
		t.Errorf("deleted: %v, want code 3", err)
	}
	made(t, c, 3, nil)
	if second, err := c.Identity(t.Context(), topic); err != nil || second.ID == first.ID {
		t.Errorf("made again: %+v, %v; want another id than %s", second, err, first.ID)
	}
}

func TestIdentityTellsWhatIsPermitted(t *testing.T) {
	real := secured.Get(t)
	topic := made(t, open(t, Options{Brokers: real.Brokers()}), 1, nil)
	bob := open(t, Options{Brokers: real.BrokersAt(kafka.SASL), SASL: &SASL{Mechanism: Plain, User: "bob", Password: "builder"}})
	if _, err := bob.Identity(t.Context(), topic); Code(err) != 29 {
		t.Errorf("nothing permitted: %v, want code 29", err)
	}
	acl := kafka.ACL{User: "bob", Operation: kmsg.ACLOperationWrite, Resource: topic}
	real.AddACL(t, acl)
	identity, err := settle(t.Context(), func() (Identity, error) { return bob.Identity(t.Context(), topic) })
	if err != nil || identity.Operations.Lacks(Write) || !identity.Operations.Lacks(Read) || !identity.Operations.Lacks(DescribeConfigs) {
		t.Errorf("WRITE is permitted: %+v, %v", identity, err)
	}
}

func TestIdentityOfOldBrokersIsUnknown(t *testing.T) {
	if unknownOperations.Lacks(Read) {
		t.Error("an operation is said to be missing where nothing is known")
	}
	if knows([]byte{0, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 8}, protocol.Metadata, identityVersion) || knows(nil, protocol.Metadata, identityVersion) {
		t.Error("Metadata up to version 8 is taken for one with ids")
	}
	if !knows([]byte{0, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 10}, protocol.Metadata, identityVersion) {
		t.Error("Metadata up to version 10 is taken for one without ids")
	}
}

func FuzzReadIdentity(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 2, 't', 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 1, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = readIdentity(body, "t")
	})
}
