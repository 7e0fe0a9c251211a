package console

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/decode"
)

// mostRemembered is how many objects tail --diff remembers. The one that was remembered first is forgotten then.
const mostRemembered = 20_000

// Printer writes lines, and remembers the last version of each object where differences are shown.
type Printer struct {
	out      *bufio.Writer
	screen   *Screen // on out
	json     bool
	colour   bool
	versions map[string]any // by uid
	order    []string       // of the uids
	Last     change.ID
}

func NewPrinter(out *bufio.Writer, asJSON, colour, diff bool) *Printer {
	p := &Printer{out: out, screen: On(out), json: asJSON, colour: colour}
	if diff {
		p.versions = map[string]any{}
	}
	return p
}

// Colourful says whether lines are coloured: on a terminal that can, unless NO_COLOR says no (no-color.org).
func Colourful(out io.Writer, lookup func(string) (string, bool)) bool {
	no, set := lookup("NO_COLOR")
	terminal, _ := lookup("TERM")
	return IsTerminal(out) && (!set || no == "") && terminal != "dumb"
}

// Repeats says whether the change has the id of the one before.
func (p *Printer) Repeats(c *decode.Change) bool { return p.Last == c.ID }

// Compare remembers the object, and says what changed since the version before, nil where none is known.
func (p *Printer) Compare(c *decode.Change) []difference {
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

// part is a text on a line, in a colour; "" is none.
type part struct{ colour, text string }

// write writes one line of the parts. The first error stays in the buffer, and comes back from flush.
func (p *Printer) write(parts ...part) {
	for _, one := range parts {
		paint := p.colour && one.colour != "" && one.text != ""
		if paint {
			p.screen.act("\x1b[" + one.colour + "m")
		}
		fmt.Fprint(p.screen, one.text)
		if paint {
			p.screen.act("\x1b[0m")
		}
	}
	fmt.Fprintln(p.screen)
}

func (p *Printer) Show(l *Line) error {
	if p.json {
		return json.NewEncoder(p.screen).Encode(l)
	}
	object := change.Key{Namespace: l.Namespace, Name: l.Name}.String()
	if l.Name == "" {
		object = l.Namespace
	}
	what := fmt.Sprintf("  %-24s  %-40s  ", Plain(l.Resource), Plain(object))
	version := Plain(strings.TrimSpace(l.ResourceVersion + "  " + l.Reason))
	if version == "" {
		what = strings.TrimRight(what, " ")
	}
	p.write(part{faint, l.Time.Local().Format("15:04:05.000")}, part{"", "  "}, part{opColour(l.Op), fmt.Sprintf("%-14s", Plain(l.Op))}, part{"", what}, part{faint, version})
	for _, d := range l.Diff {
		p.write(part{"", "    " + Plain(d.Path) + ": "}, value(red, d.Old), part{"", " -> "}, value(green, d.New))
	}
	return nil
}

// mostValue is how many characters of a value a line shows.
const mostValue = 160

func value(colour string, text json.RawMessage) part {
	if text == nil {
		return part{faint, "none"}
	}
	shown := string(text)
	if runes := []rune(shown); len(runes) > mostValue {
		shown = string(runes[:mostValue-1]) + "…"
	}
	return part{colour, Plain(shown)}
}

// Note tells what is no change. With JSON it is left out: each line is a change there.
func (p *Printer) Note(format string, args ...any) {
	if !p.json {
		p.write(part{yellow, "-- " + Plain(fmt.Sprintf(format, args...))})
	}
}

func (p *Printer) Flush() error { return p.out.Flush() }
