package destination

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/format/decode"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// toys are the logs of toy sinks, by their paths.
type toys map[string][]sink.Stored

// toy is a sink that keeps its log in memory.
type toy struct {
	logs toys
	path string
	read int // of the log
}

func (t *toy) Open(context.Context, sink.Opening) error { return nil }

func (t *toy) Write(_ context.Context, batch []sink.Message) (sink.Mark, error) {
	for _, m := range batch {
		t.logs[t.path] = append(t.logs[t.path], sink.Stored{Destination: m.Destination, Value: bytes.Clone(m.Value)})
	}
	return "", nil
}

func (t *toy) Close(context.Context) error { return nil }

// toyReader reads a toy's log.
type toyReader struct{ *toy }

func (r toyReader) Read(_ context.Context, each func(*sink.Stored) error) error {
	for ; r.read < len(r.logs[r.path]); r.read++ {
		if err := each(&r.logs[r.path][r.read]); err != nil {
			return err
		}
	}
	return nil
}

func (r toyReader) Close() error { return nil }

// withToys are kinds of which files are toys: the one registration that a sink needs.
func withToys(logs toys) registered {
	all := kinds()
	all[config.KindFile] = kind{destination: func(s *config.Sink, c *cluster.Cluster) (*Destination, error) {
		subject, err := encode.NewSubject("toys.{cluster}.{resource}", c.Name)
		return &Destination{
			transport: encode.NATS, routes: subject, Places: []Place{{What: "toy " + s.File.Path, Key: "file.path"}},
			build: func(Outlet) (sink.Sink, error) { return &toy{logs: logs, path: s.File.Path}, nil },
			read:  func(sink.Start) (sink.Reader, error) { return toyReader{&toy{logs: logs, path: s.File.Path}}, nil },
		}, err
	}}
	return all
}

// TestASinkIsOneRegistration: a kind of sinks that was registered is built, written to, read back and told from others.
func TestASinkIsOneRegistration(t *testing.T) {
	cfg, err := config.Parse("c.yaml", []byte("cluster: c\nresources: [{resource: pods}]\nstate: {dir: /s}\nsinks: [{name: a, file: {path: /toy}}, {name: b, file: {path: /toy}}]"), os.LookupEnv)
	must(t, err)
	all, c := withToys(toys{}), &cluster.Cluster{Name: "c", UID: "0b6f3c1e-8a4d"}
	built, err := all.build(&cfg.Sinks[0], c, Outlet{Stdout: io.Discard, Told: Nop{}})
	must(t, err)
	rec := &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}, Op: change.Added,
		Key: change.Key{Namespace: "shop", Name: "web"}, UID: "u", ResourceVersion: "7", Object: []byte(`{}`), Received: time.UnixMilli(1).UTC(),
	}
	messages, err := built.Encoder.Encode(t.Context(), nil, rec)
	if err == nil {
		_, err = built.Target.Write(t.Context(), messages)
	}
	must(t, err)
	reader, err := all.reader(&cfg.Sinks[0], c, func(d *Destination) (sink.Reader, error) { return d.read(sink.Start{}) })
	must(t, err)
	var read []string
	err = reader.Read(t.Context(), func(m *sink.Stored) error {
		told, err := decode.Read(m)
		read = append(read, m.Destination+" "+fmt.Sprint(told.ID == rec.ID(c.UID)))
		return err
	})
	if err != nil || fmt.Sprint(read) != "[toys.c.pods true]" {
		t.Errorf("read %v, %v", read, err)
	}
	var places []Place
	for i := range cfg.Sinks {
		d, err := all.of(&cfg.Sinks[i], c)
		must(t, err)
		places = append(places, d.Places...)
	}
	if !places[0].Meets(&places[1]) {
		t.Errorf("%+v are not the same place", places)
	}
}

func TestAKindThatIsNotRegisteredIsNamed(t *testing.T) {
	_, err := registered{}.of(&config.Sink{Name: "a", File: &config.File{Path: "/x"}}, &cluster.Cluster{})
	if want := `sink a: this build has no sink of kind "file"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
