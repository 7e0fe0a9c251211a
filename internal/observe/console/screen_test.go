package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/observe/verify"
	"github.com/kubecdc/kubecdc/internal/sink/deadletter"
)

// hostile has what terminals act on: escape sequences of 7 and 8 bits, a bell, a return, DEL, what turns the direction
// of writing, what nobody sees, and what is no UTF-8; and a line and a column that are not the program's.
const hostile = "a\x1b]0;t\x07b\x9bc\u009b31md\x7fe\u202ef\u2066g\u200bh\ri\nforged\tcell\xff\u2028"

// actsOn finds what a terminal would act on.
func actsOn(text string) string {
	for i, r := range text {
		if r == '\n' || r == '\t' {
			continue
		}
		if acts(r) || r == '\ufffd' && text[i] == 0xff {
			return fmt.Sprintf("%q at %d", r, i)
		}
	}
	return ""
}

func TestScreenShowsWhatATerminalWouldActOn(t *testing.T) {
	for size := range 9 { // of the pieces that come; 0 is all at once
		var shown bytes.Buffer
		s := On(&shown)
		for rest := []byte(hostile + "é𝄞end"); len(rest) > 0; {
			n := len(rest)
			if size > 0 {
				n = min(size, n)
			}
			if _, err := s.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		const want = `a\u001b]0;t\u0007b` + "\ufffd" + `c\u009b31md\u007fe\u202ef\u2066g\u200bh\u000di` + "\nforged\tcell\ufffd" + `\u2028é𝄞end`
		if shown.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, shown.String(), want)
		}
	}
}

// What is JSON says the same as before.
func TestScreenLeavesJSONWhatItIs(t *testing.T) {
	document := map[string]any{"name": strings.ToValidUTF8(hostile, ""), "tag": "\U000e0041"}
	var shown bytes.Buffer
	must(t, json.NewEncoder(On(&shown)).Encode(document))
	var read map[string]any
	if err := json.Unmarshal(shown.Bytes(), &read); err != nil || !reflect.DeepEqual(read, document) {
		t.Errorf("%v: read %q, want %q", err, read, document)
	}
	if found := actsOn(shown.String()); found != "" {
		t.Errorf("%s in %q", found, shown.String())
	}
}

// TestNamesStayInTheirPlace: a name is neither a line nor a column of its own.
func TestNamesStayInTheirPlace(t *testing.T) {
	d := &verify.Report{Sink: "s", Streams: []verify.Row{{Result: verify.Result{Stream: "roles", Differences: []verify.Difference{{Kind: "missing", Stream: "roles", Name: hostile}}}}}}
	objects := func(yield func(control.Object, error) bool) {
		yield(control.Object{Stream: "roles", Name: hostile}, nil)
	}
	for name, print := range map[string]func(out *Screen) (lines int, err error){
		"verify":    func(out *Screen) (int, error) { return 5, (&Reports{Out: out}).Show(d) },
		"inventory": func(out *Screen) (int, error) { _, err := PrintObjects(objects, false, out); return 2, err },
		"dev": func(out *Screen) (int, error) {
			p := NewPrinter(out, Style{Brief: true})
			return 1, errors.Join(p.Show(&Line{Op: "added", Resource: "roles", Name: hostile, UID: "u", Diff: []difference{{Path: hostile}}}), p.Flush())
		},
		"snapshot": func(out *Screen) (int, error) {
			return 2, PrintSnapshots(map[string]control.LastSnapshot{"roles": {Reason: hostile, Time: time.Now()}}, out)
		},
		"checkpoint": func(out *Screen) (int, error) {
			return 7, PrintState(&control.State{Cluster: "c", Streams: map[string]control.StreamState{"roles": {Sinks: map[string]control.SinkState{"bus": {Selector: hostile}}}}}, out)
		},
	} {
		var shown bytes.Buffer
		lines, err := print(On(&shown))
		if found := actsOn(shown.String()); err != nil || found != "" || strings.Count(shown.String(), "\n") > lines {
			t.Errorf("%s: %v, %s, %d lines in\n%s", name, err, found, strings.Count(shown.String(), "\n"), shown.String())
		}
	}
}

// TestI6NoNameMakesALongLine: names of some kinds are bounded by etcd alone. A table is as wide as its widest cell.
func TestI6NoNameMakesALongLine(t *testing.T) {
	name := strings.Repeat("n", 300_000)
	shows := map[string]func(*Screen) error{
		"tail": func(s *Screen) error {
			p := NewPrinter(s, Style{})
			p.Note("nothing of %s", name)
			return errors.Join(p.Show(&Line{Op: "added", Resource: "roles", Namespace: "shop", Name: name}), p.Flush())
		},
		"diff": func(s *Screen) error {
			p := NewPrinter(s, Style{})
			return errors.Join(p.Show(&Line{Op: "added", Diff: []difference{{Path: name}}}), p.Flush())
		},
		"inventory": func(s *Screen) error {
			_, err := PrintObjects(func(yield func(control.Object, error) bool) {
				_ = yield(control.Object{Stream: "roles", Namespace: "shop", Name: name}, nil) && yield(control.Object{Name: "web"}, nil)
			}, false, s)
			return err
		},
		"letters": func(s *Screen) error {
			_, err := PrintLetters(func(yield func(*deadletter.Letter, error) bool) {
				yield(&deadletter.Letter{Namespace: "shop", Name: name}, nil)
			}, false, s)
			return err
		},
		"check": func(s *Screen) error {
			(&Findings{Out: s}).Note(name)
			return nil
		},
		"problem": func(s *Screen) error {
			(&Findings{Out: s}).Problem(errors.New("resource a\nis " + name))
			return nil
		},
		"findings": func(s *Screen) error {
			f := &Findings{Out: s, JSON: true}
			f.Note(name)
			return f.End()
		},
		"error": func(s *Screen) error {
			PrintError(usage.Several("names", errors.New(name), errors.New("short")), s)
			return nil
		},
	}
	for what, show := range shows {
		var out bytes.Buffer
		must(t, show(On(&out)))
		for line := range strings.Lines(out.String()) {
			if len(line) > 10_000 || what == "inventory" && len(line) > 600 {
				t.Errorf("%s: a line has %d bytes", what, len(line))
			}
		}
		if !strings.Contains(out.String(), "nnn...%sha256-") {
			t.Errorf("%s: no name in %.200s", what, &out)
		}
		if of := (change.Key{Name: name}).Shown(); what == "letters" && !strings.Contains(out.String(), "shop/"+of) {
			t.Errorf("%s: the hash is not of the name in %s", what, &out)
		}
	}
	var lines, document bytes.Buffer
	PrintError(errors.New(strings.Repeat("n\n", 300_000)), On(&lines))
	if lines.Len() > 300_000 || !strings.Contains(lines.String(), "%sha256-") {
		t.Errorf("an error of many lines has %d bytes", lines.Len())
	}
	p := NewPrinter(On(&document), Style{JSON: true})
	if err := errors.Join(p.Show(&Line{Name: name}), p.Flush()); err != nil || !strings.Contains(document.String(), name) {
		t.Errorf("a document of %d bytes has not the whole name: %v", document.Len(), err)
	}
}
