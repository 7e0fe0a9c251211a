package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/decode"
)

// mostRemembered is how many objects tail --diff remembers. The one that was remembered first is forgotten then.
const mostRemembered = 20_000

// tailPrinter writes lines, and remembers the last version of each object where differences are shown.
type tailPrinter struct {
	out      *bufio.Writer
	json     bool
	colour   bool
	versions map[string]any // by uid
	order    []string       // of the uids
	last     change.ID
}

func newTailPrinter(out *bufio.Writer, asJSON, colour, diff bool) *tailPrinter {
	p := &tailPrinter{out: out, json: asJSON, colour: colour}
	if diff {
		p.versions = map[string]any{}
	}
	return p
}

// colourful says whether lines are coloured: on a terminal that can, unless NO_COLOR says no (no-color.org).
func colourful(out io.Writer, lookup func(string) (string, bool)) bool {
	no, set := lookup("NO_COLOR")
	terminal, _ := lookup("TERM")
	return isTerminal(out) && (!set || no == "") && terminal != "dumb"
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// repeats says whether the change has the id of the one before.
func (p *tailPrinter) repeats(c *decode.Change) bool { return p.last == c.ID }

// compare remembers the object, and says what changed since the version before, nil where none is known.
func (p *tailPrinter) compare(c *decode.Change) []difference {
	uid := c.ID.UID
	if uid == "" {
		return nil
	}
	before, known := p.versions[uid]
	if c.ID.Op == change.Deleted {
		delete(p.versions, uid)
		return nil
	}
	after := parseObject(c.Object)
	if !known {
		p.order = append(p.order, uid)
	}
	p.versions[uid] = after
	for len(p.order) > mostRemembered {
		delete(p.versions, p.order[0])
		p.order = p.order[1:]
	}
	if !known || after == nil {
		return nil
	}
	all := compareObjects(before, after)
	if c.ID.Resource == "secrets" {
		hideSecrets(all)
	}
	return all
}

// The colours of operations (ECMA-48).
const (
	red, green, yellow, blue, faint = "31", "32", "33", "34", "2"
)

func opColour(op string) string {
	switch op {
	case "added":
		return green
	case "deleted", "gap":
		return red
	case "updated":
		return blue
	case "replaced", "sync":
		return yellow
	}
	return faint
}

func (p *tailPrinter) paint(code, text string) string {
	if !p.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p *tailPrinter) print(l *tailLine) error {
	if p.json {
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		_, err = p.out.Write(append(escapeJSON(text), '\n'))
		return err
	}
	object := change.Key{Namespace: l.Namespace, Name: l.Name}.String()
	if l.Name == "" {
		object = l.Namespace
	}
	line := p.paint(faint, l.Time.Local().Format("15:04:05.000")) + "  " + p.paint(opColour(l.Op), fmt.Sprintf("%-14s", plain(l.Op))) +
		fmt.Sprintf("  %-24s  %-40s  ", plain(l.Resource), plain(object)) + p.paint(faint, plain(strings.TrimSpace(l.ResourceVersion+"  "+l.Reason)))
	if _, err := fmt.Fprintln(p.out, strings.TrimRight(line, " ")); err != nil {
		return err
	}
	for _, d := range l.Diff {
		if _, err := fmt.Fprintf(p.out, "    %s: %s -> %s\n", plain(d.Path), p.value(red, d.Old), p.value(green, d.New)); err != nil {
			return err
		}
	}
	return nil
}

// mostValue is how many characters of a value a line shows.
const mostValue = 160

func (p *tailPrinter) value(code string, text json.RawMessage) string {
	if text == nil {
		return p.paint(faint, "none")
	}
	shown := string(text)
	if runes := []rune(shown); len(runes) > mostValue {
		shown = string(runes[:mostValue-1]) + "…"
	}
	return p.paint(code, plain(shown))
}

// note tells what is no change. With JSON it is left out: each line is a change there.
func (p *tailPrinter) note(format string, args ...any) {
	if !p.json {
		fmt.Fprintln(p.out, p.paint(yellow, "-- "+plain(fmt.Sprintf(format, args...)))) // an error comes back from flush
	}
}

func (p *tailPrinter) flush() error { return p.out.Flush() }

// plain is the text without anything that a terminal would act on: control characters of all kinds, and those that turn
// the direction of writing, are shown as their code.
func plain(text string) string {
	if !strings.ContainsFunc(text, acts) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text { // what is no UTF-8 comes as U+FFFD
		if acts(r) {
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func acts(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// escapeJSON escapes what encoding/json leaves as it is, and a terminal may act on.
func escapeJSON(text []byte) []byte { return []byte(plain(string(text))) }
