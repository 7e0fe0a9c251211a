package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Screen is what everything goes through that a terminal may show. Names, versions and messages come from whoever may
// create an object, and a terminal acts on more than letters: what it would act on is shown as its code, \u001b for an
// escape. Within a JSON string that says the same as before. Newlines and tabs pass: they are the program's own, and a
// text of others is made plain before it is put between them.
type Screen struct {
	to   io.Writer
	rest []byte // the beginning of a character whose end comes with the next Write
}

func On(out io.Writer) *Screen {
	if s, already := out.(*Screen); already {
		return s
	}
	return &Screen{to: out}
}

// Write returns how much of the text was taken.
func (s *Screen) Write(text []byte) (int, error) {
	whole := append(s.rest, text...)
	end := len(whole) - unfinished(whole)
	shown := escape(string(whole[:end]), func(r rune) bool { return acts(r) && r != '\n' && r != '\t' })
	s.rest = append([]byte(nil), whole[end:]...)
	if _, err := io.WriteString(s.to, shown); err != nil {
		return 0, err
	}
	return len(text), nil
}

// act writes what the terminal is to act on. It is the program's own, and never made of what others wrote.
func (s *Screen) act(sequence string) error {
	_, err := io.WriteString(s.to, sequence)
	return err
}

// unfinished is how many bytes at the end are the beginning of a character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// IsTerminal says whether a person looks at what is written.
func IsTerminal(out io.Writer) bool {
	if s, ok := out.(*Screen); ok {
		out = s.to
	}
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Records is where records go that are written to a command's output: as they are, unless a terminal shows them.
func (s *Screen) Records() io.Writer {
	if IsTerminal(s) {
		return s
	}
	return s.to
}

// plain is a text of others without anything that a terminal would act on, or that would end a line or a column:
// control characters of all kinds, and those that turn the direction of writing, are shown as their code. What is too
// long to be read is cut.
func plain(text string) string { return escape(change.Shown(text, change.MaxShown), acts) }

// PrintError is the last word of a command.
func PrintError(err error, out io.Writer) {
	fmt.Fprintf(On(out), "exporter: %s\n", readable(err.Error()))
}

// readable is an error, which may have several lines, without what is too long to be read.
func readable(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		lines[i] = change.Shown(line, change.MaxShown)
	}
	return change.Shown(strings.Join(lines, ""), 32*change.MaxShown)
}

func escape(text string, acts func(rune) bool) string {
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

// grid is a table. A cell stays in its place, whatever is in it.
type grid struct{ *tabwriter.Writer }

func newGrid(out io.Writer) grid { return grid{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)} }

// row writes one line. An error comes back from Flush.
func (g grid) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		if key, ok := cell.(change.Key); ok {
			texts[i] = plain(key.Shown())
			continue
		}
		texts[i] = plain(change.Shown(fmt.Sprint(cell), change.MaxNamed))
	}
	fmt.Fprintln(g, strings.Join(texts, "\t"))
}

// gap leaves a line free, after which columns are measured anew.
func (g grid) gap() { fmt.Fprintln(g) }
