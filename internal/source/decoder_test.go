package source

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// toldLine notes what is put in line. Where gate is set, each Push waits for it.
type toldLine struct {
	countLine
	told *[]string
	gate chan struct{}
}

func (l *toldLine) Push(_ context.Context, rec *change.Record) error {
	if l.gate != nil {
		<-l.gate
	}
	*l.told = append(*l.told, fmt.Sprintf("%s@%s", rec.Op, rec.ResourceVersion))
	return nil
}

// newTestDecoder is of a stream that continues.
func newTestDecoder(ctx context.Context, body io.Reader, line Line) *decoder {
	s := NewStream(Config{Observer: NopObserver(), Saved: change.Position{ResourceVersion: "0", Complete: true}})
	s.line = line
	return &decoder{ctx: ctx, stream: s, body: io.NopCloser(body), frames: frame.NewReader(body, frame.Options{}), ended: func(int, bool, time.Duration) {}}
}

// decodeAll tells what of a watch that comes in pieces goes in line, and what goes to the Reflector.
func decodeAll(ctx context.Context, pieces ...string) (all []string) {
	readers := make([]io.Reader, len(pieces))
	for i, piece := range pieces {
		readers[i] = strings.NewReader(piece)
	}
	d := newTestDecoder(ctx, io.MultiReader(readers...), &toldLine{told: &all})
	for {
		event, object, err := d.Decode()
		if err != nil {
			return append(all, fmt.Sprintf("%v after %d frames", err, d.count))
		}
		if o, ok := object.(interface{ GetResourceVersion() string }); ok {
			all = append(all, fmt.Sprintf("%s at %s", event, o.GetResourceVersion()))
		}
	}
}

// watchLine is a frame of a watch.
func watchLine(kind string, version int) string {
	return fmt.Sprintf(`{"type":"%s","object":{"metadata":{"name":"a","resourceVersion":"%d"}}}`+"\n", kind, version)
}

func TestI3FramesGoInLineInTheirOrder(t *testing.T) {
	line := watchLine
	for name, c := range map[string]struct{ pieces, want []string }{
		"one after the other": {
			[]string{line("ADDED", 1), line("MODIFIED", 2)},
			[]string{"added@1", "BOOKMARK at 1", "updated@2", "EOF after 2 frames"},
		},
		"together": {
			[]string{line("ADDED", 1) + line("DELETED", 2) + line("ADDED", 3)},
			[]string{"added@1", "BOOKMARK at 1", "deleted@2", "added@3", "EOF after 3 frames"},
		},
		"bookmarks": {
			[]string{line("BOOKMARK", 1) + line("ADDED", 2) + "\r\n" + line("BOOKMARK", 3)},
			[]string{"bookmark@1", "BOOKMARK at 1", "added@2", "bookmark@3", "EOF after 3 frames"},
		},
		"a replay": {
			[]string{line("ADDED", 1) + line("ADDED", 1) + line("ADDED", 2)},
			[]string{"added@1", "BOOKMARK at 1", "added@2", "EOF after 3 frames"},
		},
		"an error behind": {
			[]string{line("ADDED", 1) + `{"type":"ERROR","object":{"kind":"Status","metadata":{"resourceVersion":"7"},"code":410}}` + "\n"},
			[]string{"added@1", "BOOKMARK at 1", "ERROR at 7", "EOF after 2 frames"},
		},
		"an error alone": {
			[]string{`{"type":"ERROR","object":{"kind":"Status","metadata":{"resourceVersion":"7"},"code":410}}` + "\n"},
			[]string{"ERROR at 7", "EOF after 1 frames"},
		},
		"no end": {
			[]string{line("ADDED", 1) + `{"type":`},
			[]string{"added@1", "BOOKMARK at 1", "unexpected EOF after 1 frames"},
		},
	} {
		if got := decodeAll(t.Context(), c.pieces...); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
}

// Whoever closes a watch goes on with the stream: what the watch is putting in line must be in line before, and nothing
// may follow.
func TestI3NothingGoesInLineBehindAWatchThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		line := &toldLine{told: &told, gate: make(chan struct{})}
		d := newTestDecoder(t.Context(), strings.NewReader(watchLine("ADDED", 1)+watchLine("ADDED", 2)), line)
		closed := make(chan struct{})
		go func() {
			for err := error(nil); err == nil; {
				_, _, err = d.Decode()
			}
		}()
		synctest.Wait() // the first record is going in line
		go func() { d.Close(); d.end(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("the watch was closed while a record was going in line")
		default:
		}
		close(line.gate)
		synctest.Wait()
		if want := []string{"added@1"}; !slices.Equal(told, want) {
			t.Errorf("in line are %q, want %q", told, want)
		}
	})
}

// answerer is an API server that answers each request with the body.
type answerer struct{ body io.ReadCloser }

func (a answerer) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: a.body, Request: request}, nil
}

// TestNobodyWaitsForItsTurnUnderTheLockOfAWatch: the Reflector would wait for the lock, and no simulated time passes
// while somebody does.
func TestNobodyWaitsForItsTurnUnderTheLockOfAWatch(t *testing.T) {
	for name, c := range map[string]struct {
		last string
		end  error
	}{
		"it ended":                 {watchLine("ADDED", 1), io.EOF},
		"it broke":                 {"{", io.ErrUnexpectedEOF},
		"it cannot be read":        {"x\n", io.EOF},
		"the server sent an error": {`{"type":"ERROR","object":{"kind":"Status","code":500}}` + "\n", io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read, write := io.Pipe()
				client, err := NewClient(&rest.Config{Host: "http://server", Transport: answerer{read}}, 1)
				if err != nil {
					t.Fatal(err)
				}
				told := newRecorder()
				config := Config{Client: client, Stream: pods(), Inventory: told, Saved: at(0), ClusterUID: "epoch-1", Observer: NopObserver()}
				s := NewStream(config)
				s.line = told
				opened, err := (&watcher{Stream: s}).open(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				lock := opened.(*stoppable).Interface.(*watch.StreamWatcher)
				s.turns.take() // as a snapshot has it
				go func() {
					_, _ = write.Write([]byte(c.last))
					write.CloseWithError(c.end)
				}()
				synctest.Wait()
				over := make(chan struct{})
				go func() { // the Reflector
					defer close(over)
					for event := range opened.ResultChan() {
						if event.Type == watch.Error {
							break
						}
					}
					opened.Stop()
				}()
				for range 4 { // the turn goes round, and each time the next one has it for long
					next := make(chan struct{})
					go func() { s.turns.take(); close(next) }()
					synctest.Wait()
					s.turns.give()
					<-next
					synctest.Wait()
					if lock.TryLock() {
						lock.Unlock()
					} else {
						t.Error("somebody waits with the lock")
					}
				}
				s.turns.give()
				<-over
			})
		})
	}
}
