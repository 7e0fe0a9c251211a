package console

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Style is how a Printer shows changes.
type Style struct {
	JSON   bool // a document a line
	Colour bool
	Brief  bool // one line for each change, with what changed in short
}

// Printer writes lines.
type Printer struct {
	out    *bufio.Writer
	screen *Screen // on out
	style  Style
}

// NewPrinter makes a printer that writes to the screen with each Flush.
func NewPrinter(screen *Screen, style Style) *Printer {
	out := bufio.NewWriter(screen.to)
	return &Printer{out: out, screen: On(out), style: style}
}

// Colourful says whether lines are coloured: on a terminal that can, unless NO_COLOR says no (no-color.org).
func Colourful(out io.Writer, lookup func(string) (string, bool)) bool {
	no, set := lookup("NO_COLOR")
	terminal, _ := lookup("TERM")
	return IsTerminal(out) && (!set || no == "") && terminal != "dumb"
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
		paint := p.style.Colour && one.colour != "" && one.text != ""
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

// Show writes one change.
func (p *Printer) Show(l *Line) error {
	if p.style.JSON {
		return json.NewEncoder(p.screen).Encode(l)
	}
	object := change.Key{Namespace: l.Namespace, Name: l.Name}.Shown()
	if l.Name == "" {
		object = l.Namespace
	}
	what := fmt.Sprintf("  %-24s  %-40s  ", plain(l.Resource), plain(object))
	behind := slices.DeleteFunc([]string{l.ResourceVersion, l.Reason, l.by()}, func(text string) bool { return text == "" })
	version := plain(strings.Join(behind, "  "))
	if p.style.Brief {
		version = plain(l.summary())
	}
	if version == "" {
		what = strings.TrimRight(what, " ")
	}
	p.write(part{faint, l.Time.Local().Format("15:04:05.000")}, part{"", "  "}, part{opColour(l.Op), fmt.Sprintf("%-14s", plain(l.Op))}, part{"", what}, part{faint, version})
	if p.style.Brief {
		return nil
	}
	for _, d := range l.Diff {
		p.write(part{"", "    " + plain(d.Path) + ": "}, value(red, d.Old), part{"", " -> "}, value(green, d.New))
	}
	return nil
}

// mostValue is how many characters of a value a line shows.
const mostValue = 160

func value(colour string, text json.RawMessage) part {
	if text == nil {
		return part{faint, "none"}
	}
	return part{colour, plain(ellipsis(string(text), mostValue))}
}

// Note tells what is no change. With JSON it is left out: each line is a change there.
func (p *Printer) Note(format string, args ...any) {
	if !p.style.JSON {
		p.write(part{yellow, "-- " + plain(fmt.Sprintf(format, args...))})
	}
}

// Flush shows what was written. Its error is the first one of all writes.
func (p *Printer) Flush() error { return p.out.Flush() }
