package wire

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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
