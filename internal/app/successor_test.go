package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

// Kinds of a member's streams.
const (
	pods = iota
	configMaps
)

func isFenced(err error) bool {
	var refused *sink.PermanentError
	return errors.As(err, &refused) && refused.Fenced
}

// succession is how a leader that was paused and its idle successor meet.
type succession struct {
	publish string
	earlier bool  // the successor goes on from a state that is several lives of the leader old
	words   []int // what the leader tells when it wakes up, by kinds in their order
	first   []int // the kinds of what the successor tells then
	again   bool  // the leader tells more when the successor has begun anew, and has not written yet
	anew    bool  // the successor has to begin anew
}

func (s succession) String() string {
	names := func(of []int) (names []string) {
		for _, kind := range of {
			names = append(names, kinds()[kind].Resource.Name)
		}
		return names
	}
	return fmt.Sprintf("%s, earlier %t, words %v, first %v, again %t", s.publish, s.earlier, names(s.words), names(s.first), s.again)
}

// TestI3I10APausedLeadersWordsBesideAnIdleSuccessor: JetStream takes them until the successor has written. Whatever the
// two tell then, everything is told once and in order: what both tell in one order counts as the successor's, and
// otherwise it begins anew and finds what the leader has told. From the successor's first message on the leader is
// fenced.
func TestI3I10APausedLeadersWordsBesideAnIdleSuccessor(t *testing.T) {
	server := natsserver.Start(t)
	for i, s := range []succession{
		{publish: "fast", words: []int{pods}, first: []int{pods}},
		{publish: "fast", words: []int{pods, pods, pods}, first: []int{pods, pods, pods}},
		{publish: "fast", words: []int{pods, configMaps, pods}, first: []int{pods, pods}, anew: true},
		{publish: "fast", words: []int{pods, pods, configMaps}, first: []int{configMaps, pods}, anew: true, again: true},
		{publish: "fast", earlier: true, words: []int{pods, configMaps}, first: []int{configMaps}, anew: true},
		{publish: "fast", earlier: true, words: []int{configMaps, configMaps, pods}, first: []int{pods}, anew: true, again: true},
		{publish: "ordered", words: []int{pods, pods, pods}, first: []int{configMaps}, anew: true},
		{publish: "ordered", earlier: true, words: []int{configMaps, configMaps, pods}, first: []int{pods}, anew: true, again: true},
	} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel() // who begins anew waits a second first, for more that may come late
			stream := fmt.Sprintf("S_%d", i)
			s.play(t, server.URL(), stream, fmt.Sprintf("- name: bus\n  nats: {url: %q, stream: %s, subject: %q, publish: %s}\n",
				server.URL(), stream, stream+".{resource}.{namespace}.{name}", s.publish))
		})
	}
}

func (s succession) play(t *testing.T, url, stream, sinks string) {
	dir, states, shown := t.TempDir(), []string{}, [2]int{}
	for range 3 { // lives of the leader, and what its state was before each
		states = append(states, filepath.Join(t.TempDir(), "state"))
		if err := os.CopyFS(states[len(states)-1], os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		m := startMember(t, dir, sinks)
		m.begin()
		m.tell(&shown, pods, configMaps, configMaps, pods, pods)
		m.quit()
	}
	leader := startMember(t, dir, sinks)
	leader.begin()
	leader.tell(&shown, pods, configMaps)

	state := states[2]
	if s.earlier {
		state = states[1]
	}
	copied := filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(copied, os.DirFS(state)); err != nil {
		t.Fatal(err)
	}
	successor := startMember(t, copied, sinks)
	successor.show(shown)
	successor.begin()
	successor.await()
	if successor.late > 0 {
		t.Errorf("an idle successor began anew %d times beside a leader that said nothing", successor.late)
	}
	seen := shown
	leader.tell(&shown, s.words...)
	if s.again {
		successor.anew = func() {
			successor.anew = nil
			leader.tell(&shown, pods, configMaps)
		}
	}
	successor.tell(&seen, s.first...)
	if begunAnew := successor.late > 0; s.anew && !begunAnew || s.again && successor.anew != nil {
		t.Errorf("the successor began anew %d times", successor.late)
	}
	successor.show(shown)
	successor.await()
	shown = successor.shown
	successor.tell(&shown, configMaps, pods)
	leader.show([2]int{pods: shown[pods]})
	leader.awaitFenced()
	successor.quit()
	told := readIDs(t, url, stream)
	wantTold(t, told, whole(shown))

	third := startMember(t, state, sinks) // which goes on from what the successor went on from
	third.show(shown)
	third.begin()
	third.await()
	third.quit()
	if again := readIDs(t, url, stream); len(again) != len(told) {
		t.Errorf("behind that state %d messages are told again", len(again)-len(told))
	}
}

// readIDs are those of all messages of the stream.
func readIDs(t *testing.T, url, name string) (ids []change.ID) {
	t.Helper()
	stream, err := natsserver.Connect(t, url).Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	state := stream.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		id, err := change.ParseID(m.Header.Get(sink.HeaderID))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}
