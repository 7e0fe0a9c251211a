package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// registry is the schema registry of one sink: now and then it has no schema of a resource for a while. It outlives the
// exporter's lives. The world's lock guards it.
type registry struct {
	world   *world
	shut    map[string]shutting // by resource
	changed chan struct{}       // closed and made anew when an answer is another one
}

// shutting is the time in which a registry has no schema of a resource.
type shutting struct{ from, until time.Time }

func newRegistry(w *world) *registry {
	return &registry{world: w, shut: map[string]shutting{}, changed: make(chan struct{})}
}

// lose takes the schema of the resource away for so long.
func (r *registry) lose(resource string, d time.Duration) {
	now := time.Now()
	from := now
	if last := r.shut[resource]; now.Before(last.until) {
		from = last.from
	}
	r.shut[resource] = shutting{from, now.Add(d)}
	r.tell()
	time.AfterFunc(d, func() {
		r.world.mu.Lock()
		defer r.world.mu.Unlock()
		r.tell()
	})
}

// heal gives all schemas back.
func (r *registry) heal() {
	clear(r.shut)
	r.tell()
}

func (r *registry) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// lacks says whether the registry has no schema of the resource.
func (r *registry) lacks(resource string) bool { return time.Now().Before(r.shut[resource].until) }

// gate is listener.Gate's.
type gate struct{ *registry }

func (g gate) Admits(stream *change.Stream) bool {
	g.world.mu.Lock()
	defer g.world.mu.Unlock()
	return !g.lacks(stream.Resource.Name)
}

func (g gate) Changed() <-chan struct{} {
	g.world.mu.Lock()
	defer g.world.mu.Unlock()
	return g.changed
}

// gatedEncoder has the schemas of a registry.
type gatedEncoder struct {
	listener.Encoder
	gate gate
}

var errNoSchema = errors.New("the registry has no schema")

func (e gatedEncoder) Encode(ctx context.Context, dst []sink.Message, rec *change.Record) ([]sink.Message, error) {
	if !e.gate.Admits(rec.Stream) {
		return dst, errNoSchema
	}
	return e.Encoder.Encode(ctx, dst, rec)
}

// isGated says whether the sink's format has its schemas from a registry.
func (s script) isGated(sinkName string) bool {
	return slices.ContainsFunc(s.Lives, func(l lifeSpec) bool {
		return slices.ContainsFunc(l.Actions, func(a action) bool { return a.Do == "shut" && a.Key == sinkName })
	})
}

// behindGate makes the sink one whose format has its schemas from a registry, where the script says so.
func (l *life) behindGate(s listener.Sink) listener.Sink {
	if l.world.script.isGated(s.Name) {
		g := gate{l.world.logs[s.Name].registry}
		s.Gate, s.Encoder = g, gatedEncoder{s.Encoder, g}
	}
	return s
}

// gates chooses when registries have no schemas. It chooses by a source of its own.
func (g generator) gates(s *script) {
	for i := range s.Lives {
		l := &s.Lives[i]
		if g.chance(40) {
			continue
		}
		key, lasts := pick(g, s.Sinks...).Name, pick(g, 3000, 20_000, 45_000, 100_000, 300_000)
		resource := pick(g, pods, pods, events)
		during := []action{{Do: "shut", Resource: resource, Key: key, N: lasts}}
		for range g.IntN(16) {
			during = append(during, action{
				Do: pick(g, "put", "put", "delete", "delete", "recreate"), Resource: pick(g, resource, resource, pods, events),
				Key: pick(g, keys()...), N: pick(g, 0, 1, 8),
			})
			if g.chance(30) {
				during = append(during, pick(g,
					action{Do: "sleep", N: pick(g, 200, 6000, 31_000, 70_000)}, action{Do: "restart", N: g.IntN(2)}, action{Do: "request"},
					action{Do: "bookmark"}, action{Do: "settle"}, action{Do: "compact"},
					action{Do: "shut", Resource: pick(g, pods, events), Key: pick(g, s.Sinks...).Name, N: pick(g, 3000, 45_000, 100_000)}))
			}
		}
		l.Actions = slices.Insert(l.Actions, g.IntN(len(l.Actions)+1), during...)
	}
}
