package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// registry is the schema registry of one sink: now and then it has no schema of a resource for a while. It outlives the
// exporter's lives. The world's lock guards it.
type registry struct {
	world   *world
	shut    map[string]shutting // by resource
	changed chan struct{}       // closed and made anew when an answer is another one
	stuck   bool                // the sink was given what it has no schema of
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

// gate is delivery.Gate's.
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
	delivery.Encoder
	gate gate
}

var errNoSchema = errors.New("the registry has no schema")

func (e gatedEncoder) Encode(ctx context.Context, dst []sink.Message, rec *change.Record) ([]sink.Message, error) {
	if !e.gate.gives(rec) {
		return dst, errNoSchema
	}
	return e.Encoder.Encode(ctx, dst, rec)
}

// gives says whether the registry has the record's schema, without which nobody puts it in line.
func (g gate) gives(rec *change.Record) bool {
	w := g.world
	w.mu.Lock()
	defer w.mu.Unlock()
	resource := rec.Stream.Resource.Name
	lacks := g.lacks(resource)
	if lacks && rec.Seq > 0 && rec.Received.After(g.shut[resource].from) && !w.isTroubled() {
		w.violateLocked("gate", "%s is in line though its sink has no schema", describe(rec))
	}
	g.stuck = lacks
	return !lacks
}

// isGated says whether the sink's format has its schemas from a registry.
func (s script) isGated(sinkName string) bool {
	return slices.ContainsFunc(s.Lives, func(l lifeSpec) bool {
		return slices.ContainsFunc(l.Actions, func(a action) bool { return a.Do == "shut" && a.Key == sinkName })
	})
}

// behindGate makes the sink one whose format has its schemas from a registry, where the script says so.
func (l *life) behindGate(s delivery.Sink) delivery.Sink {
	if l.world.script.isGated(s.Name) {
		g := gate{l.world.logs[s.Name].registry}
		s.Gate, s.Encoder = g, gatedEncoder{s.Encoder, g}
	}
	return s
}

// gatePatience is how long others wait for a sink that has no schema of their stream.
const gatePatience = 30 * time.Second

// waits judges that nobody waits for schemas for longer than that, whatever the number of sinks that have none, in a
// life in which nothing else goes wrong with a sink. What a sink was given before its registry lost the schema holds it
// up (docs/registry.md), and so does a stream of which no sink has the schema.
func (j *judge) waits(l *life) {
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	if l.dead || j.world.task != nil || j.world.isTroubled() {
		return
	}
	for name, r := range l.streams {
		if len(r.received) == 0 {
			continue
		}
		rec := r.received[len(r.received)-1]
		waited := min(time.Since(rec.Received), j.gained(l, rec))
		if rec.Seq == 0 && waited > gatePatience+15*time.Second && !rec.Received.IsZero() {
			j.world.violateLocked("gate", "%s of %s waits for %s", describe(rec), name, waited)
		}
	}
}

// gained says for how long there has been a sink that could be given the record. The caller holds the world's lock.
func (j *judge) gained(l *life, rec *change.Record) (longest time.Duration) {
	for _, spec := range j.world.script.Sinks {
		r := j.world.logs[spec.Name].registry
		if !r.lacks(rec.Stream.Resource.Name) && l.wants(spec, rec) && !l.misses(spec.Name, rec.Stream) {
			longest = max(longest, time.Since(r.shut[rec.Stream.Resource.Name].until))
		}
	}
	return longest
}

// isTroubled says whether some sink may be slow for another reason than that it has no schema. The caller holds mu.
func (w *world) isTroubled() bool {
	for _, spec := range w.script.Sinks {
		g := w.logs[spec.Name]
		if g.troubled || g.registry.stuck && w.life.has(spec.Name) {
			return true
		}
	}
	return w.life.wasFull
}

// missesStream judges that a sink which has no schema misses a stream that has waited for long, and no other.
func (j *judge) missesStream(l *life, sinkName string, stream change.Stream) {
	l.noteLocked("fail", fmt.Sprintf("sink %s misses %s", sinkName, stream))
	l.missed[checkpoint.Subscription{Sink: sinkName, Stream: stream.String()}] = true
	waited := time.Duration(math.MaxInt64)
	if received := l.streams[stream.String()].received; len(received) > 0 {
		last := received[len(received)-1].Received
		if waited = time.Since(last); len(received) > 1 { // the one before may have waited, and be in line by now
			waited = max(waited, last.Sub(received[len(received)-2].Received))
		}
	}
	if !j.world.logs[sinkName].registry.lacks(stream.Resource.Name) || waited < gatePatience {
		j.world.violateLocked("I4", "sink %s misses %s, whose schema it has, or which has waited for %s only", sinkName, stream, waited)
	}
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
