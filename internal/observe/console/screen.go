package console

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/observe/verify"
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

// PrintTable prints the rows, of which the first is the head.
func PrintTable(out io.Writer, rows [][]any) error {
	table := newGrid(out)
	for _, cells := range rows {
		table.row(cells...)
	}
	return table.Flush()
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

// Findings shows what a check finds: each thing as a line at once, or all as one document at the end.
type Findings struct {
	Out  io.Writer
	JSON bool
	Of   string // begins each text: the task that it is of, where there are several

	all      []finding
	problems problems
}

type finding struct {
	Result string `json:"result"`
	Text   string `json:"text"`
}

// OK says that nothing is wrong with it.
func (f *Findings) OK(what string) { f.show("ok", f.Of+what) }

// Note says what is no problem.
func (f *Findings) Note(text string) { f.show("note", f.Of+text) }

// Problem shows each of several problems by itself, and says whether there is one. Errors are fit to be shown.
func (f *Findings) Problem(err error) bool {
	for _, one := range usage.Each(err) {
		f.show("problem", f.Of+one.Error())
		f.problems = append(f.problems, one)
	}
	return err != nil
}

// ProblemOf is Problem, with what each is of.
func (f *Findings) ProblemOf(what string, err error) bool {
	var all []error
	for _, one := range usage.Each(err) {
		all = append(all, fmt.Errorf("%s: %w", what, one))
	}
	return f.Problem(errors.Join(all...))
}

func (f *Findings) show(result, text string) {
	text = readable(text)
	if f.JSON {
		f.all = append(f.all, finding{result, text})
		return
	}
	if result != "problem" {
		text = plain(text)
	}
	fmt.Fprintf(f.Out, "%-8s %s\n", result, text)
}

// End shows the document. Its error is that something was wrong.
func (f *Findings) End() (err error) {
	if f.JSON {
		err = PrintJSON(struct {
			Problems int       `json:"problems"`
			Findings []finding `json:"findings"`
		}{len(f.problems), f.all}, f.Out)
	}
	if len(f.problems) > 0 {
		err = errors.Join(f.problems, err)
	}
	return err
}

// problems counts what is wrong, which has been shown. It wraps all of it, for the exit code.
type problems []error

func (p problems) Error() string {
	if len(p) == 1 {
		return "check found 1 problem"
	}
	return fmt.Sprintf("check found %d problems", len(p))
}

func (p problems) Unwrap() []error { return p }

// PrintJSON prints one document.
func PrintJSON(document any, out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

// alignEvery is how many lines of a table are held to find how wide its columns are (I6).
const alignEvery = 1000

// columns are the head of a table, and a line of it.
type columns[T any] struct {
	head []any
	of   func(T) []any
}

// printAll writes a table, or one JSON document per line, and says of how many. Its error is also of what could not be
// read.
func printAll[T any](all iter.Seq2[T, error], asJSON bool, out io.Writer, c columns[T]) (n int, err error) {
	table, encoder := newGrid(out), json.NewEncoder(out)
	var unread []error
	for one, err := range all {
		switch {
		case err != nil:
			unread = append(unread, err)
			continue
		case asJSON:
			err = encoder.Encode(one)
		default:
			if n == 0 {
				table.row(c.head...)
			}
			if table.row(c.of(one)...); (n+1)%alignEvery == 0 {
				err = table.Flush()
			}
		}
		if err != nil {
			return n, fmt.Errorf("write the list: %w", err)
		}
		n++
	}
	return n, errors.Join(append(unread, table.Flush())...)
}

// PrintObjects writes a table, or one JSON object per line.
func PrintObjects(objects iter.Seq2[control.Object, error], asJSON bool, out io.Writer) (n int, err error) {
	head := []any{"STREAM", "NAMESPACE", "NAME", "UID", "RESOURCEVERSION", "SINKS"}
	return printAll(objects, asJSON, out, columns[control.Object]{head, func(o control.Object) []any {
		return []any{o.Stream, o.Namespace, o.Name, o.UID, o.ResourceVersion, strings.Join(o.Sinks, ",")}
	}})
}

// parseObject keeps numbers as they are written.
func parseObject(text []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var object any
	if decoder.Decode(&object) != nil {
		return nil
	}
	return object
}

// Reports prints them.
type Reports struct {
	Out  io.Writer
	JSON bool
}

func (r *Reports) Note(format string, args ...any) {
	if !r.JSON {
		fmt.Fprintf(r.Out, format+"\n", args...)
	}
}

// mostShown is how many differences of a sink a person is shown.
const mostShown = 200

func (r *Reports) Show(d *verify.Report) (err error) {
	if r.JSON {
		return json.NewEncoder(r.Out).Encode(d)
	}
	out := bufio.NewWriter(r.Out)
	defer func() { err = errors.Join(err, out.Flush()) }()
	fmt.Fprintf(out, "sink %s (%s): %d records read\n", d.Sink, d.Kind, d.Records-d.Foreign)
	if err := printStreams(d, out); err != nil {
		return err
	}
	if err := printDifferences(d, out); err != nil {
		return err
	}
	if d.Note != "" && !d.Undecided {
		fmt.Fprintf(out, "note: %s\n", d.Note)
	}
	if d.Equal {
		fmt.Fprintf(out, "equal: %d objects\n", d.EqualObjects())
	}
	return nil
}

// ShowDigests prints what a log's digests say.
func (r *Reports) ShowDigests(d *verify.DigestReport) error {
	if r.JSON {
		return json.NewEncoder(r.Out).Encode(d)
	}
	text := fmt.Appendf(nil, "sink %s (%s): %d records read, %d digests compared\n", d.Sink, d.Kind, d.Records, d.Digests)
	for _, m := range d.Mismatch {
		since := "since the log begins"
		if !m.After.IsZero() {
			since = "after " + m.After.UTC().Format(time.RFC3339Nano)
		}
		text = fmt.Appendf(text, "%s of cluster %s: a record is missing or wrong, %s and before %s: the log has %d objects there, the exporter counted %d (%d digests differ)\n",
			m.Resource, m.Cluster, since, m.At.UTC().Format(time.RFC3339Nano), m.Objects, m.Want, m.Times)
		if m.After.IsZero() {
			text = fmt.Appendf(text, "  a log whose beginning is gone lacks what has not changed since: exporter snapshot tells it again\n")
		}
	}
	if d.Equal {
		text = append(text, "all are equal\n"...)
	}
	_, err := r.Out.Write(text)
	return err
}

func printStreams(d *verify.Report, out io.Writer) error {
	table := newGrid(out)
	changing, unjudged := 0, 0
	for _, row := range d.Streams {
		changing, unjudged = changing+row.Changing, unjudged+row.Unjudged
	}
	show := func(cells []any, ofChanging, ofUnjudged any) {
		if changing > 0 {
			cells = append(cells, ofChanging)
		}
		if unjudged > 0 {
			cells = append(cells, ofUnjudged)
		}
		table.row(cells...)
	}
	show([]any{"STREAM", "RESOURCEVERSION", "OBJECTS", "EQUAL", "MISSING", "STALE", "EXTRA"}, "CHANGING", "UNJUDGED")
	for _, row := range d.Streams {
		show([]any{row.Stream, row.ResourceVersion, row.Objects, row.Equal, row.Missing, row.Stale, row.Extra}, row.Changing, row.Unjudged)
	}
	return table.Flush()
}

func printDifferences(d *verify.Report, out io.Writer) error {
	table := newGrid(out)
	shown := 0
	for _, row := range d.Streams {
		for _, one := range row.Differences {
			if shown++; shown > mostShown {
				continue
			}
			key, has := change.Key{Namespace: one.Namespace, Name: one.Name}, "sink "+cmp.Or(one.SinkVersion, "-")
			if one.Place != "" {
				has += " in " + one.Place
			}
			table.row(one.Kind, one.Stream, key, "cluster "+cmp.Or(one.ClusterVersion, "-"), has)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if shown > mostShown {
		fmt.Fprintf(out, "and %d more: -o json has all of them\n", shown-mostShown)
	}
	return nil
}

func PrintState(s *control.State, out io.Writer) error {
	fmt.Fprintf(out, "cluster %s, uid %s\n\n", s.Cluster, s.ClusterUID)
	table := newGrid(out)
	table.row("STREAM", "SINK", "RESOURCEVERSION", "OBJECTS", "SNAPSHOT", "SELECTOR")
	for _, name := range slices.Sorted(maps.Keys(s.Streams)) {
		sinks := s.Streams[name].Sinks
		for _, sink := range slices.Sorted(maps.Keys(sinks)) {
			p := sinks[sink]
			table.row(name, sink, p.ResourceVersion, p.Objects, p.Comparing, p.Selector)
		}
	}
	table.gap()
	table.row("SINK", "MARK")
	for _, name := range slices.Sorted(maps.Keys(s.Marks)) {
		table.row(name, s.Marks[name])
	}
	if len(s.Owed) > 0 {
		table.gap()
		table.row("SINK", "OWED SNAPSHOT OF", "REASON")
	}
	for i := range s.Owed {
		o, reason := &s.Owed[i], s.Owed[i].Reason
		if o.State == control.Paused {
			reason += ", " + o.State
		}
		table.row(o.Sink, whatOf(o), reason)
	}
	return table.Flush()
}

func PrintSnapshots(found map[string]control.LastSnapshot, out io.Writer) error {
	table := newGrid(out)
	table.row("STREAM", "REASON", "RESOURCEVERSION", "SYNCED", "REPLACED", "DELETED")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		r := found[name]
		table.row(name, r.Reason, r.ResourceVersion, r.Synced, r.Replaced, r.Deleted)
	}
	return table.Flush()
}

// PrintOwed writes a table of the snapshots that are owed, or one JSON object per line.
func PrintOwed(owed []control.Owed, asJSON bool, out io.Writer) error {
	all := func(yield func(*control.Owed, error) bool) {
		for i := 0; i < len(owed) && yield(&owed[i], nil); i++ {
		}
	}
	head := []any{"ID", "RESOURCE", "SINK", "REASON", "STATE", "PROGRESS"}
	_, err := printAll(all, asJSON, out, columns[*control.Owed]{head, func(o *control.Owed) []any {
		return []any{o.ID, whatOf(o), o.Sink, o.Reason, o.State, progressOf(o)}
	}})
	return err
}

// whatOf is the resource, and which objects of it, where that is not all.
func whatOf(o *control.Owed) string {
	if limits := o.Limits.String(); limits != "" {
		return o.Stream + ", " + limits
	}
	return o.Stream
}

// progressOf is in percent, where that is known.
func progressOf(o *control.Owed) string {
	switch {
	case o.Percent != nil:
		return fmt.Sprintf("%d%%", *o.Percent)
	case o.State == control.Reads || o.State == control.Delivers:
		return fmt.Sprintf("%d objects", o.Objects)
	}
	return "-"
}
