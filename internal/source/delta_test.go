package source

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// decodeAll tells, delta by delta, what a decoder makes of a watch that comes in pieces.
func decodeAll(pieces ...string) []string {
	readers := make([]io.Reader, len(pieces))
	for i, piece := range pieces {
		readers[i] = strings.NewReader(piece)
	}
	d := &decoder{stream: NewStream(Config{}), frames: frame.NewReader(io.MultiReader(readers...), frame.Options{})}
	var all []string
	for {
		event, object, err := d.Decode()
		if err != nil {
			return append(all, fmt.Sprintf("%v after %d frames", err, d.count.Load()))
		}
		text := string(event)
		if delta, ok := object.(*delta); ok {
			for _, rec := range delta.records {
				text += fmt.Sprintf(" %s@%s", rec.Op, rec.ResourceVersion)
			}
			text += " at " + delta.GetResourceVersion()
		}
		all = append(all, text)
	}
}

func TestI3FramesOfOneReadAreOneDeltaInTheirOrder(t *testing.T) {
	line := func(kind string, version int) string {
		return fmt.Sprintf(`{"type":"%s","object":{"metadata":{"name":"a","resourceVersion":"%d"}}}`+"\n", kind, version)
	}
	for name, c := range map[string]struct{ pieces, want []string }{
		"one after the other": {
			[]string{line("ADDED", 1), line("MODIFIED", 2)},
			[]string{"ADDED added@1 at 1", "MODIFIED updated@2 at 2", "EOF after 2 frames"},
		},
		"together": {
			[]string{line("ADDED", 1) + line("DELETED", 2) + line("ADDED", 3)},
			[]string{"DELETED added@1 deleted@2 added@3 at 3", "EOF after 3 frames"},
		},
		"the start of one more": {
			[]string{line("ADDED", 1) + line("ADDED", 2)[:20], line("ADDED", 2)[20:]},
			[]string{"ADDED added@1 at 1", "ADDED added@2 at 2", "EOF after 2 frames"},
		},
		"an empty line, behind which Next would wait": {
			[]string{line("ADDED", 1) + "\r\n", line("ADDED", 2)},
			[]string{"ADDED added@1 at 1", "ADDED added@2 at 2", "EOF after 2 frames"},
		},
		"a bookmark between": {
			[]string{line("ADDED", 1) + line("BOOKMARK", 2) + line("ADDED", 3) + line("ADDED", 4)},
			[]string{"ADDED added@1 at 1", "BOOKMARK bookmark@2 at 2", "ADDED added@3 added@4 at 4", "EOF after 4 frames"},
		},
		"an error behind": {
			[]string{line("ADDED", 1) + `{"type":"ERROR","object":{"kind":"Status","code":410}}` + "\n"},
			[]string{"ADDED added@1 at 1", "ERROR", "EOF after 2 frames"},
		},
		"no end": {
			[]string{line("ADDED", 1) + `{"type":`},
			[]string{"ADDED added@1 at 1", "unexpected EOF after 1 frames"},
		},
	} {
		if got := decodeAll(c.pieces...); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
}

// A delta is bounded, however small the frames are.
func TestI6ADeltaIsBounded(t *testing.T) {
	text := strings.Repeat(`{"type":"ADDED","object":{"metadata":{"name":"a"}}}`+"\n", maxDelta+1)
	got := decodeAll(text)
	if len(got) != 3 || strings.Count(got[0], "added@") != maxDelta || strings.Count(got[1], "added@") != 1 {
		t.Errorf("got %q", got)
	}
}
