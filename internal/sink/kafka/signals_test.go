package kafka

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	"github.com/kubecdc/kubecdc/internal/sink/signal"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

// signalsRig is a topic of signals with a handler that notes what it was given.
type signalsRig struct {
	t       *testing.T
	cluster *kafkatest.Cluster
	options SignalOptions
	signals *Signals

	taken   []string // values, with a mark in front of those that are not to be followed
	place   string   // that was saved
	told    [][]byte
	refusal error // of Follow
}

func (r *signalsRig) Follow(_ context.Context, m *signal.Message) error {
	switch {
	case r.refusal != nil:
		return r.refusal
	case m.Broken != nil:
		r.taken = append(r.taken, "broken "+m.Broken.Error())
	case m.Old != "":
		r.taken = append(r.taken, "old "+string(m.Value))
	default:
		r.taken = append(r.taken, string(m.Value))
	}
	return nil
}

func (r *signalsRig) Tell(_ context.Context, send func([][]byte) error) error {
	if len(r.told) == 0 {
		return nil
	}
	return send(r.told)
}

func (r *signalsRig) Save(place string) error {
	r.place = place
	return nil
}

func newSignalsRig(t *testing.T) *signalsRig {
	t.Helper()
	r := &signalsRig{t: t, cluster: broker.Get(t)}
	options := testOptions(t, r.cluster, 2)
	r.options = SignalOptions{
		Sink: options, Topic: options.Topics[0], Notifications: options.Topics[1], Cluster: []byte("prod"),
		Handler: r, Heard: func(error) {},
	}
	r.live("")
	t.Cleanup(func() { r.signals.disconnect() })
	return r
}

// live begins a life of the exporter at the place.
func (r *signalsRig) live(place string) {
	r.t.Helper()
	if r.signals != nil {
		r.signals.disconnect()
	}
	r.options.Place, r.taken = place, nil
	var err error
	if r.signals, err = NewSignals(r.options); err != nil {
		r.t.Fatal(err)
	}
}

// takes looks once, and says what must have been taken.
func (r *signalsRig) takes(want ...string) {
	r.t.Helper()
	r.taken = nil
	must(r.t, r.signals.look(within(r.t)))
	if !slices.Equal(r.taken, want) {
		r.t.Errorf("taken %.300q, want %.300q", r.taken, want)
	}
}

func (r *signalsRig) write(values ...string) {
	r.t.Helper()
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, &kgo.Record{Key: []byte("prod"), Value: []byte(v)})
	}
	r.put(records...)
}

// put writes with a client that knows nothing of earlier topics.
func (r *signalsRig) put(records ...*kgo.Record) {
	r.t.Helper()
	writer, err := kgo.NewClient(kgo.SeedBrokers(r.cluster.Brokers()...), kgo.DefaultProduceTopic(r.options.Topic), kgo.UnknownTopicRetries(100),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(64<<20))
	must(r.t, err)
	defer writer.Close()
	must(r.t, writer.ProduceSync(within(r.t), records...).FirstErr())
}

// TestI5SignalsAreTakenOnce: what is there before the first look is not taken. What comes after a saved place is taken
// by the life that follows. What the handler does not take is given again.
func TestI5SignalsAreTakenOnce(t *testing.T) {
	r := newSignalsRig(t)
	r.takes() // and makes the topic
	r.write("before")
	r.live("")
	r.takes()
	r.write("one", "two")
	r.takes("one", "two")
	r.takes()
	saved := r.place
	r.write("three")
	r.live(saved)
	r.refusal = errors.New("not yet")
	if err := r.signals.look(within(t)); !errors.Is(err, r.refusal) {
		t.Errorf("a handler that takes nothing is %v", err)
	}
	r.refusal = nil
	r.takes("three")
	r.cluster.CreateTopic(t, r.options.Topic+".other", kafkatest.Topic{})
	saved, r.options.Topic = r.place, r.options.Topic+".other"
	r.put(&kgo.Record{Topic: r.options.Topic, Key: []byte("prod"), Value: []byte("of another topic")})
	r.live(saved) // the configuration was changed
	r.takes()
}

// TestASignalTopicThatIsMadeAnew has what it was filled with, and what comes then.
func TestASignalTopicThatIsMadeAnew(t *testing.T) {
	r := newSignalsRig(t)
	r.takes()
	early := time.Now().Add(-time.Hour)
	r.write("one")
	r.takes("one")
	r.cluster.DeleteTopic(t, r.options.Topic)
	r.options.Sink.Create = false
	r.live(r.place)
	if err := r.signals.look(within(t)); err == nil || !strings.Contains(err.Error(), "it does not exist: create it") {
		t.Errorf("without the topic: %v", err)
	}
	r.cluster.CreateTopic(t, r.options.Topic, kafkatest.Topic{Partitions: 2})
	r.put(&kgo.Record{Key: []byte("prod"), Value: []byte("one"), Timestamp: early},
		&kgo.Record{Key: []byte("prod"), Value: []byte("two")}, &kgo.Record{Key: []byte("prod"), Value: []byte("three"), Partition: 1})
	r.takes("old one", "two", "three")
	r.put(&kgo.Record{Key: []byte("prod"), Value: []byte("four"), Partition: 1})
	r.write("five", "six")
	r.cluster.DeleteRecords(t, r.options.Topic, 0, 3)
	r.takes("six", "four")
}

// TestI6AFloodOfSignalsIsTakenInPieces.
func TestI6AFloodOfSignalsIsTakenInPieces(t *testing.T) {
	r := newSignalsRig(t)
	r.takes()
	var flood []string
	for i := range 2*signalsAtOnce + 1 {
		flood = append(flood, fmt.Sprint(i))
	}
	r.write(flood...)
	r.takes(flood[:signalsAtOnce]...)
	r.live(r.place)
	r.takes(flood[signalsAtOnce : 2*signalsAtOnce]...)
	r.takes(flood[2*signalsAtOnce:]...)
}

// TestI6ASignalThatUnpacksToFarMoreBlindsNobody.
func TestI6ASignalThatUnpacksToFarMoreBlindsNobody(t *testing.T) {
	r := newSignalsRig(t)
	r.takes()
	r.write("one")
	r.write(strings.Repeat("0", signalBatch+1))
	r.write("two")
	r.taken = nil
	must(t, r.signals.look(within(t)))
	if len(r.taken) != 3 || r.taken[0] != "one" || !strings.HasPrefix(r.taken[1], "broken ") || r.taken[2] != "two" {
		t.Errorf("taken %.200q", r.taken)
	}
}

// TestNotificationsAreWritten, into a topic that is made for them.
func TestNotificationsAreWritten(t *testing.T) {
	r := newSignalsRig(t)
	large := []byte(strings.Repeat("x", notifyBytes))
	r.told = [][]byte{[]byte("first")}
	ctx := within(t)
	for err := r.signals.look(ctx); err != nil; err = r.signals.look(ctx) { // nobody leads a new partition at once
		var refused *sink.PermanentError
		if errors.As(err, &refused) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	r.told = [][]byte{[]byte("one"), large, []byte("two")}
	r.takes()
	var got []string
	for _, record := range r.cluster.ConsumeFast(t, r.options.Notifications, kafkatest.JudgeOptions{}) {
		if string(record.Value) != "first" {
			got = append(got, string(record.Key)+" "+string(record.Value))
		}
	}
	if want := []string{"prod one", "prod " + string(large), "prod two"}; !slices.Equal(got, want) {
		t.Errorf("written are %d notifications, %.60q", len(got), got)
	}
	for name, want := range map[string]string{r.options.Topic: "delete", r.options.Notifications: "delete"} {
		if have := r.cluster.TopicConfig(t, name)["cleanup.policy"]; have != want {
			t.Errorf("topic %s has cleanup.policy %s", name, have)
		}
	}
}

// TestSignalsWithoutRights: what is missing is named.
func TestSignalsWithoutRights(t *testing.T) {
	kafkatest.RequireReal(t)
	r := newSignalsRig(t)
	c := secured.Get(t)
	r.options.Sink.Wire = wire.Options{Brokers: c.BrokersAt(kafkatest.SASL), SASL: &wire.SASL{Mechanism: "SCRAM-SHA-256", User: "carol", Password: "singer"}}
	r.options.Sink.Create, r.options.Notifications = false, ""
	c.CreateTopic(t, r.options.Topic, kafkatest.Topic{})
	r.live("")
	check := func(want string) {
		t.Helper()
		if err := r.signals.Check(within(t)); want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("check says %v, want %s", err, want)
		}
	}
	c.AddACL(t, kafkatest.ACL{User: "carol", Operation: kmsg.ACLOperationDescribe, Resource: r.options.Topic})
	check("grant READ on topic " + r.options.Topic)
	c.AddACL(t, kafkatest.ACL{User: "carol", Operation: kmsg.ACLOperationRead, Resource: r.options.Topic})
	check("")
	r.takes()
}

// TestSignalsWhoseFilesAreGone: what cannot be read any more is told, and ends nothing.
func TestSignalsWhoseFilesAreGone(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	to := wire.Options{Brokers: []string{"127.0.0.1:1"}, TLS: &wire.TLS{CAFile: ca}}
	s, err := NewSignals(SignalOptions{Sink: Options{Wire: to}, Topic: "t", Handler: &signalsRig{t: t}})
	must(t, err)
	must(t, os.Remove(ca))
	if err := s.look(within(t)); err == nil || !strings.Contains(err.Error(), "kafka.tls.ca") {
		t.Errorf("without the authority: %v", err)
	}
}
