package wire

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kubecdc/kubecdc/test/kafka"
)

func TestIdentityTellsWhatIsPermitted(t *testing.T) {
	real := secured.Get(t)
	topic := made(t, open(t, Options{Brokers: real.Brokers()}), 1, nil)
	bob := open(t, Options{Brokers: real.BrokersAt(kafka.SASL), SASL: &SASL{Mechanism: Plain, User: "bob", Password: "builder"}})
	if _, err := bob.Topic(t.Context(), topic); Code(err) != 29 {
		t.Errorf("nothing permitted: %v, want code 29", err)
	}
	acl := kafka.ACL{User: "bob", Operation: kmsg.ACLOperationWrite, Resource: topic}
	real.AddACL(t, acl)
	found, err := settle(t.Context(), func() (Topic, error) { return bob.Topic(t.Context(), topic) })
	if err != nil || found.Operations.Lacks(Write) || !found.Operations.Lacks(Read) || !found.Operations.Lacks(DescribeConfigs) {
		t.Errorf("WRITE is permitted: %+v, %v", found, err)
	}
}

// TestOldBrokersAreToldApart has a broker that knows neither ids of topics nor DescribeTransactions.
func TestOldBrokersAreToldApart(t *testing.T) {
	fake, c := scripted(t, 1, Options{})
	fake.ControlKey(int16(kmsg.ApiVersions), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		answer := r.ResponseKind().(*kmsg.ApiVersionsResponse)
		answer.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: 3, MaxVersion: 8}, {ApiKey: 10, MaxVersion: 2}, {ApiKey: 18}}
		return answer, nil, true
	})
	if topic, err := c.Topic(t.Context(), "t"); err != nil || topic.ID != "" || len(topic.Partitions) != 2 || topic.Operations.Lacks(Read) {
		t.Errorf("the topic is %+v, %v", topic, err)
	}
	if _, err := c.TransactionTimeout(t.Context(), "id"); Code(err) != kerr.UnsupportedVersion.Code || Classify(err) != Fatal {
		t.Errorf("the timeout: %v, want code 35", err)
	}
}
