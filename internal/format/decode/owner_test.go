package decode

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI10AnotherClustersRecordIsKnown in every format of every transport, by the name that it was written under.
func TestI10AnotherClustersRecordIsKnown(t *testing.T) {
	owner := Owner{Cluster: "prod & co", UIDs: []string{"aaaaaaaa-1", "bbbbbbbb-2"}}
	named := owner
	named.Named = true
	for _, transport := range []encode.Transport{encode.File, encode.NATS, encode.Kafka} {
		for _, format := range []string{encode.FormatCloudEvents, encode.FormatCloudEventsBinary, encode.FormatDebezium, encode.FormatObject} {
			if transport == encode.File && format != encode.FormatCloudEvents && format != encode.FormatDebezium {
				continue
			}
			t.Run(fmt.Sprint(format, transport), func(t *testing.T) {
				for _, uid := range []string{"aaaaaaaa-1", "bbbbbbbb-2", "bbbbbbbb-2~history"} {
					if err := owner.Judge(written(format, transport, "prod & co", uid)); err != nil {
						t.Errorf("one of ours: %v", err)
					}
				}
				knows := format != encode.FormatObject
				for _, c := range []struct {
					owner Owner
					name  string
					same  bool
				}{{owner, "prod & co", knows}, {owner, "other", false}, {named, "prod & co", true}, {named, "other", !knows}} {
					var foreign *sink.ForeignError
					err := c.owner.Judge(written(format, transport, c.name, "cccccccc-3"))
					if !errors.As(err, &foreign) || foreign.UID != "cccccccc" || foreign.Same != c.same || foreign.Place != "here" {
						t.Errorf("one of cluster %q, named %t: %+v", c.name, c.owner.Named, err)
					}
				}
			})
		}
	}
	if err := named.Judge(&sink.Stored{Value: []byte(`{"kind":"Widget","cluster":"other","id":"7"}`)}); err != nil {
		t.Errorf("what kubecdc did not write: %v", err)
	}
}

// written is an object that has fields of the envelopes' names.
func written(format string, transport encode.Transport, cluster, uid string) *sink.Stored {
	rec := &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "widgets", Kind: "Widget"}}, Op: change.Updated, Epoch: uid,
		Key: change.Key{Namespace: "shop", Name: "web"}, UID: "u-1", ResourceVersion: "7", Received: time.UnixMilli(1),
		Object: []byte(`{"kind":"Widget","specversion":"1.0","cluster":"tenant","source":{"name":"tenant"}}`),
	}
	encoder := encode.NewEncoder(encode.Options{Cluster: cluster, ClusterUID: uid, Format: format, Transport: transport})
	messages, err := encoder.Encode(context.Background(), nil, rec)
	if err != nil {
		panic(err)
	}
	m := messages[0]
	stored := &sink.Stored{Place: "here", Headers: m.Headers, Value: m.Value}
	if transport != encode.File {
		stored.Headers = append(stored.Headers, sink.Header{Name: sink.HeaderID, Value: m.ID})
	}
	return stored
}
