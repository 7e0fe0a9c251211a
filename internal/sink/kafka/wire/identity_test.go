package wire

import (
	"testing"

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
	question := &kmsg.MetadataRequest{Version: identityVersion}
	upTo := func(version int16) *kmsg.ApiVersionsResponse {
		return &kmsg.ApiVersionsResponse{ApiKeys: []kmsg.ApiVersionsResponseApiKey{{ApiKey: question.Key(), MaxVersion: version}}}
	}
	if knows(upTo(8), question) || knows(kmsg.NewPtrApiVersionsResponse(), question) {
		t.Error("Metadata up to version 8 is taken for one with ids")
	}
	if !knows(upTo(10), question) {
		t.Error("Metadata up to version 10 is taken for one without ids")
	}
}

// TestOldBrokersAreToldApart has a broker that knows neither ids of topics nor DescribeTransactions.
func TestOldBrokersAreToldApart(t *testing.T) {
	fake, c := scripted(t, 1, Options{})
	fake.ControlKey(int16(kmsg.ApiVersions), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		answer := r.ResponseKind().(*kmsg.ApiVersionsResponse)
		for _, api := range []kmsg.ApiVersionsResponseApiKey{{ApiKey: 3, MaxVersion: 8}, {ApiKey: 10, MaxVersion: 2}, {ApiKey: 18}} {
			answer.ApiKeys = append(answer.ApiKeys, api)
		}
		return answer, nil, true
	})
	if identity, err := c.Identity(t.Context(), "t"); err != nil || identity != (Identity{Operations: unknownOperations}) {
		t.Errorf("the identity is %+v, %v", identity, err)
	}
	if _, err := c.TransactionTimeout(t.Context(), "id"); Code(err) != codeUnsupportedVersion || Classify(err) != Fatal {
		t.Errorf("the timeout: %v, want code 35", err)
	}
}
