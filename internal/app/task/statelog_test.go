package task

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

// logPatience is far more than anything takes here on a busy machine.
const logPatience = 20 * time.Second

// logRig is an exporter's state with its log in a real broker.
type logRig struct {
	t       *testing.T
	cfg     *config.Config
	cluster *cluster.Cluster
	store   *checkpoint.Store
	log     *StateLog
	stop    func()
	version int

	written, fenced chan struct{} // hold one token when the log was written since, and when it was fenced
}

// TestI1I5I10TheLogOfTheStateInABroker runs every case in JetStream and in Kafka.
func TestI1I5I10TheLogOfTheStateInABroker(t *testing.T) {
	for _, kind := range []string{"nats", "kafka"} {
		t.Run(kind, func(t *testing.T) {
			at := ""
			if kind == "nats" {
				server := natsserver.Start(t)
				at = fmt.Sprintf("nats: {url: %q}", server.URL())
			} else {
				at = fmt.Sprintf("kafka: {brokers: [%s]}", strings.Join(kafka.Start(t, kafka.Options{}).Brokers(), ", "))
			}
			for name, test := range logCases() {
				t.Run(name, func(t *testing.T) {
					r := &logRig{t: t, cluster: &cluster.Cluster{Name: strings.ReplaceAll(t.Name(), "/", "-"), UID: "0b6f3c1e-8a4d"}}
					r.configure(at, "kubecdc-state-{cluster}")
					test(t, r)
				})
			}
		})
	}
}

func logCases() map[string]func(*testing.T, *logRig) {
	return map[string]func(*testing.T, *logRig){
		"I5 a lost directory is restored":                         aLostDirectoryIsRestored,
		"I11 what is on disk alone is not in the log":             whatIsOnDiskAloneIsNotInTheLog,
		"I10 a newer exporter fences the log":                     aNewerExporterFencesTheLog,
		"I10 a leader proves that no other one is":                aLeaderProvesThatNoOtherOneIs,
		"I10 a log that is not ours is refused and goes on":       aLogThatIsNotOursIsRefused,
		"I11 the log counts where another one has led since":      theLogCountsWhereAnotherHasLed,
		"I11 a standby takes over with its copy":                  aStandbyTakesOverWithItsCopy,
		"I11 a copy is never newer than the log":                  aCopyIsNeverNewerThanTheLog,
		"I11 a standby leaves its own newer state alone":          aStandbyLeavesItsNewerStateAlone,
		"I10 a log of exporters with another Lease is refused":    aLogWithAnotherLeaseIsRefused,
		"a log that holds nothing begins anew, and a state stays": aLogThatHoldsNothingBeginsAnew,
	}
}

func (r *logRig) configure(at, name string) {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "config.yaml")
	text := fmt.Sprintf("cluster: %s\nresources: [pods]\nsinks: [{name: bus, %s}]\nstate: {dir: %q, log: {sink: bus, name: %q}}\n", r.cluster.Name, at, r.t.TempDir(), name)
	err := os.WriteFile(file, []byte(text), 0o600)
	if err == nil {
		r.cfg, err = config.Load(file, os.LookupEnv)
	}
	if err == nil {
		err = r.cfg.Validate()
	}
	r.must(err)
}

func (r *logRig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// start opens the state as a run does.
func (r *logRig) start() error { return r.startAs(new(Term)) }

// lead opens the state as a member does that leads.
func (r *logRig) lead(member string) {
	r.t.Helper()
	r.leadAs(r.standBy(member))
}

// standBy opens the directory as a member does that waits to lead.
func (r *logRig) standBy(member string) *standby {
	r.t.Helper()
	log, err := newStateLog(r.cfg, r.cluster, slog.New(slog.NewTextHandler(r.t.Output(), nil)))
	r.must(err)
	b, err := newStandby(r.t.Context(), log, statelog.Claimant{Member: member, Lease: "ns/" + r.cluster.Name})
	r.must(err)
	return b
}

// leadAs makes a member lead that has waited.
func (r *logRig) leadAs(b *standby) {
	r.t.Helper()
	r.must(r.startAs(&Term{standby: b, duration: 10 * time.Second, end: func(error) {}}))
}

// other is another exporter with the same log.
func (r *logRig) other(version int) *logRig {
	cfg := *r.cfg
	cfg.State.Dir = r.t.TempDir()
	return &logRig{t: r.t, cluster: &cluster.Cluster{Name: r.cluster.Name, UID: r.cluster.UID}, version: version, cfg: &cfg}
}

func (r *logRig) startAs(of *Term) error {
	ctx, logger := r.t.Context(), slog.New(slog.NewTextHandler(r.t.Output(), nil))
	var err error
	if r.log, err = of.Log(r.cfg, r.cluster, logger); err != nil {
		return err
	}
	if err := r.log.Begin(ctx, of); err != nil {
		return err
	}
	r.store, err = checkpoint.Open(ctx, r.cfg.State.Dir, checkpoint.Options{Logger: logger, Journal: r.log.Journal()})
	r.must(err)
	r.must(r.log.Attach(r.store))
	r.listen()
	r.must(r.cluster.Claim(r.store, r.cfg.State.Dir, logger))
	r.must(r.cluster.AdoptIdentity(r.store))
	r.stop = r.log.Run(ctx, statelog.Identity{Cluster: r.cluster.Name, UID: r.cluster.UID, Instance: r.cluster.Instance})
	return nil
}

// listen has the rig told of what the log does. Nothing writes it yet.
func (r *logRig) listen() {
	written, cut := r.log.log.Written, r.log.cut
	r.written, r.fenced = make(chan struct{}, 1), make(chan struct{}, 1)
	r.log.log.Written = func() { written(); signal(r.written) }
	r.log.cut = func(err error) { cut(err); signal(r.fenced) }
}

func signal(token chan<- struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// await waits for a token.
func (r *logRig) await(token <-chan struct{}, missing string) {
	r.t.Helper()
	select {
	case <-token:
	case <-time.After(logPatience):
		r.t.Fatalf("%s: %+v", missing, r.log.Status()())
	}
}

func (r *logRig) end() {
	r.t.Helper()
	r.stop()
	r.must(r.store.Close())
}

// lose ends it, and loses the directory.
func (r *logRig) lose() {
	r.end()
	r.must(os.RemoveAll(r.cfg.State.Dir))
}

func pod(version int) *change.Record {
	return &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}, Op: change.Updated,
		Key: change.Key{Namespace: "shop", Name: fmt.Sprint("web-", version%50)}, UID: "u", ResourceVersion: fmt.Sprint(version),
	}
}

func (r *logRig) commit(n int) {
	r.t.Helper()
	saved, err := r.store.LoadSink("bus")
	r.must(err)
	for range n {
		r.version++
		r.save(saved, checkpoint.Spools{})
	}
}

// save saves the version for sink bus.
func (r *logRig) save(saved *checkpoint.SinkState, spools checkpoint.Spools) {
	r.t.Helper()
	rec := pod(r.version)
	r.must(r.store.KnowStreams([]change.Stream{*rec.Stream}))
	at, selector := checkpoint.Point{History: 1, Version: rec.ResourceVersion}, ""
	if saved.Places["pods"][checkpoint.Others].At.History == 0 {
		r.must(saved.Acked(&checkpoint.Item{
			Kind: checkpoint.Begin, Resource: "pods", Scope: checkpoint.Others, At: at, Selection: &selector,
			Comparison: checkpoint.Comparison{ID: "1.1", Over: true, Namespace: checkpoint.Others},
		}))
	}
	r.must(saved.Acked(&checkpoint.Item{
		Kind: checkpoint.Told, Resource: "pods", Scope: checkpoint.Others, At: at, Given: at, Key: rec.Key, UID: rec.UID,
	}))
	saved.Mark = fmt.Sprint(r.version)
	r.must(r.store.SaveSinks([]*checkpoint.SinkState{saved}, spools, nil))
}

// saveUnlogged saves a change that the log never has, in the directory of a stopped exporter.
func (r *logRig) saveUnlogged() {
	r.t.Helper()
	store, err := checkpoint.Open(r.t.Context(), r.cfg.State.Dir, checkpoint.Options{})
	r.must(err)
	r.store = store
	r.commit(1)
	r.must(store.Close())
}

// awaitLogged waits until the log has everything.
func (r *logRig) awaitLogged() {
	r.t.Helper()
	for r.log.queue.IsBehind() {
		r.await(r.written, "the log lacks changes")
	}
}

// awaitShown is the state that the log has, read until it is the wanted one. Kafka answers the end of a transaction
// before all readers see it (KIP-98): whoever claims the log waits for that, and who only looks does not.
func (r *logRig) awaitShown(want *control.State) *control.State {
	r.t.Helper()
	for until := time.Now().Add(logPatience); ; {
		shown, err := ReadLog(r.t.Context(), cluster.Access{}, r.cfg)
		r.must(err)
		if reflect.DeepEqual(shown.State, want) || time.Now().After(until) {
			return shown.State
		}
	}
}

func (r *logRig) saved() *control.State {
	r.t.Helper()
	state, err := control.ReadState(r.store, true)
	r.must(err)
	return state
}

// aLostDirectoryIsRestored from a real broker, with dead letters, again and again: what is restored is what was
// saved last, exporter checkpoint show --log shows it, and an exporter that has written everything goes on in the log.
func aLostDirectoryIsRestored(t *testing.T, r *logRig) {
	letter := filepath.Join(r.cfg.State.Dir, "deadletters", "bus", "7.letter")
	for life := range 3 {
		r.must(r.start())
		r.commit(60)
		if life == 0 {
			r.must(os.MkdirAll(filepath.Dir(letter), 0o700))
			r.must(os.WriteFile(letter, []byte("letter"), 0o600))
			r.log.Changed("bus")("7.letter")
		}
		r.awaitLogged()
		before := r.saved()
		if shown := r.awaitShown(before); !reflect.DeepEqual(shown, before) || before.Streams["pods"].Sinks["bus"].Objects != 50 {
			t.Errorf("the log has %+v, and the state %+v", shown, before)
		}
		r.lose()
		r.must(r.start())
		if after := r.saved(); !reflect.DeepEqual(before, after) {
			t.Errorf("restored %+v, want %+v", after, before)
		}
		if content, err := os.ReadFile(letter); err != nil || string(content) != "letter" {
			t.Errorf("the dead letter is %q, %v", content, err)
		}
		r.end()
	}
}

// whatIsOnDiskAloneIsNotInTheLog: a sink with records on disk is restored as its own log has it, and without them.
func whatIsOnDiskAloneIsNotInTheLog(t *testing.T, r *logRig) {
	spool := fifo.Spool{}
	save := func(name, mark string) {
		t.Helper()
		state, err := r.store.LoadSink(name)
		r.must(err)
		spools := checkpoint.Spools{}
		if state.Mark = mark; name == "away" {
			spools[name] = checkpoint.Spooled{Extent: spool}
			state.Waits(!spool.Empty())
		}
		r.must(r.store.SaveSinks([]*checkpoint.SinkState{state}, spools, nil))
	}
	restored := func(life string, want map[string]string) {
		t.Helper()
		r.awaitLogged()
		r.lose()
		r.must(r.start())
		for name, want := range want {
			if state, err := r.store.LoadSink(name); err != nil || state.Mark != want || state.Given() != &state.Saved {
				t.Errorf("%s: sink %s is restored at %q, want %q; records are on disk: %v (%v)", life, name, state.Mark, want, state.Given() != &state.Saved, err)
			}
		}
	}
	r.must(r.start())
	save("away", "1")
	save("bus", "1")
	spool[fifo.Main] = fifo.Extent{Next: 1, Bytes: 5, Records: 1}
	spooled := func(version string) {
		t.Helper()
		state, err := r.store.LoadSink("away")
		r.must(err)
		at := checkpoint.Point{History: 1, Version: version}
		r.must(state.Spooled(&checkpoint.Item{
			Kind: checkpoint.Told, Resource: "pods", Scope: checkpoint.Others, At: at, Key: change.Key{Name: "web"}, UID: "u",
		}))
		state.Waits(true)
		r.must(r.store.SaveSinks([]*checkpoint.SinkState{state}, checkpoint.Spools{"away": {Extent: spool}}, nil))
	}
	spooled("2")
	save("bus", "2")
	r.end()
	r.must(r.start()) // with its directory, where the record is still on disk
	spooled("3")
	save("bus", "3")
	restored("a record is on disk", map[string]string{"away": "1", "bus": "3"})
	save("away", "4")
	spool[fifo.Main] = fifo.Extent{First: 1, Next: 1}
	save("away", "5")
	restored("nothing is on disk", map[string]string{"away": "5", "bus": "3"})
	r.end()
}

// aNewerExporterFencesTheLog: an exporter that restored the state is the only writer from then on.
func aNewerExporterFencesTheLog(t *testing.T, r *logRig) {
	r.must(r.start())
	r.commit(3)
	r.awaitLogged()
	second := r.other(100)
	second.must(second.start())
	second.commit(3)
	second.awaitLogged()
	r.commit(3)
	r.await(r.fenced, "the older exporter is not told")
	if !r.log.Status()().Fenced {
		t.Errorf("the status does not say that the log is fenced: %+v", r.log.Status()())
	}
	r.end()
	second.end()
	state, err := ReadLog(t.Context(), cluster.Access{}, r.cfg)
	r.must(err)
	if at := state.Streams["pods"].ResourceVersion; at != "103" {
		t.Errorf("the log stands at %s, want what the newer exporter wrote", at)
	}
}

// aLeaderProvesThatNoOtherOneIs for as long as none has claimed the log, whatever else it writes there. The other one
// finds all that it wrote.
func aLeaderProvesThatNoOtherOneIs(t *testing.T, r *logRig) {
	prove := func(r *logRig) error { return (&Term{standby: new(standby)}).Prove(r.log)(t.Context()) }
	r.lead("a")
	r.must(prove(r))
	r.commit(3)
	r.must(prove(r))
	r.awaitLogged()
	r.must(prove(r))
	second := r.other(100)
	second.lead("b")
	if have := second.saved().Streams["pods"].ResourceVersion; have != "3" {
		t.Errorf("it goes on at %s, want 3", have)
	}
	for began := time.Now(); ; {
		err := prove(r)
		if sink.IsFenced(err) {
			break
		}
		if err == nil || time.Since(began) > logPatience {
			t.Fatalf("another one leads, and the proof is %v", err)
		}
	}
	r.await(r.fenced, "its term does not end")
	second.must(prove(second))
	r.end()
	second.end()
}

// aLogThatIsNotOursIsRefused with the name of the setting, and its writer goes on.
func aLogThatIsNotOursIsRefused(t *testing.T, r *logRig) {
	r.must(r.start())
	r.commit(1)
	r.awaitLogged()
	name := stateLogName("kubecdc-state-{cluster}", r.cluster.Name)
	for problem, c := range map[string]struct {
		of   statelog.Identity
		want string
	}{
		"another cluster": {statelog.Identity{Cluster: "b"}, name + ` (state.log): it is of cluster "` + r.cluster.Name + `" (uid 0b6f3c1e-8a4d), and ours is "b": give each cluster a log of its own with state.log`},
		"another release": {statelog.Identity{Cluster: r.cluster.Name, Instance: "b"}, name + " (state.log): it is of another exporter's state (" + r.cluster.Instance + ", ours is b): give each release a log of its own with state.log"},
	} {
		place, err := LogPlace(r.cfg, r.cluster, func(string, error) {})
		r.must(err)
		if _, err := statelog.Claim(t.Context(), place, statelog.Bid{Of: c.of}); err == nil || !statelog.IsForGood(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", problem, err, c.want)
		}
	}
	r.commit(1)
	r.awaitLogged()
	r.end()
	if s := r.log.Status()(); s.Fenced || s.LastError != "" {
		t.Errorf("the writer was disturbed: %+v", s)
	}
}

// aLogThatHoldsNothingBeginsAnew: as at the very first start.
func aLogThatHoldsNothingBeginsAnew(t *testing.T, r *logRig) {
	_, err := ReadLog(t.Context(), cluster.Access{}, r.cfg)
	if !errors.Is(err, statelog.ErrNothing) {
		t.Errorf("a log that is not there holds something: %v", err)
	}
	if _, err := Restore(t.Context(), cluster.Access{}, r.cfg); !errors.Is(err, statelog.ErrNothing) {
		t.Errorf("a log that is not there is restored: %v", err)
	}
	r.must(r.start())
	r.commit(1)
	r.awaitLogged()
	r.end()
	if _, err := Restore(t.Context(), cluster.Access{}, r.cfg); !errors.Is(err, checkpoint.ErrState) {
		t.Errorf("a state is written over: %v", err)
	}
	cfg := *r.cfg
	cfg.State.Dir = t.TempDir()
	if from, err := Restore(t.Context(), cluster.Access{}, &cfg); err != nil || from.Messages == 0 {
		t.Errorf("restore: %+v, %v", from, err)
	}
}

// theLogCountsWhereAnotherHasLed: a leader that comes back goes on from its directory, which may be ahead of the log,
// unless another one has led since.
func theLogCountsWhereAnotherHasLed(t *testing.T, r *logRig) {
	at := func(r *logRig, want string) {
		t.Helper()
		if have := r.saved().Streams["pods"].ResourceVersion; have != want {
			t.Errorf("it goes on at %s, want %s", have, want)
		}
	}
	r.lead("a")
	r.commit(3)
	r.awaitLogged()
	r.end()
	second := r.other(100)
	second.lead("b")
	at(second, "3")
	second.commit(3)
	second.awaitLogged()
	r.lead("a")
	at(r, "103")
	r.version = 103
	r.commit(2)
	r.awaitLogged()
	r.end()
	r.saveUnlogged()
	r.lead("a")
	at(r, "106")
	r.end()
	second.end()
}
