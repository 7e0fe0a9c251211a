package console

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/format/decode"
	"github.com/kubecdc/kubecdc/internal/observe/page"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Log shows the changes of a sink's log, or those that a running exporter tells of.
type Log struct {
	Printer *Printer
	Filter  Filter
	Since   time.Time     // only what was received then or later
	Poll    time.Duration // between two looks for more; 0 ends at the end
	Diff    bool          // what changed in each object
	Silent  bool          // of what is there at first, the objects are remembered, and nothing is shown

	versions versions
	last     change.ID       // of the message before
	has      map[string]bool // the resources of all messages
}

// Follow shows what the reader has, until ctx ends.
func (l *Log) Follow(ctx context.Context, reader sink.Reader) error {
	l.versions, l.has = newVersions(), map[string]bool{}
	for {
		err := reader.Read(ctx, l.take)
		l.noteResources()
		err = errors.Join(err, l.Printer.Flush())
		if err != nil || l.Poll == 0 {
			return err
		}
		l.Silent = false
		if !sink.Pause(ctx, l.Poll, nil) {
			return nil
		}
	}
}

// noteResources tells once that the log has nothing of the resources that were asked for. Their names are those that
// records have, and no short ones.
func (l *Log) noteResources() {
	has := slices.Sorted(maps.Keys(l.has))
	if l.has = nil; len(has) > 0 && !slices.ContainsFunc(has, l.Filter.takesResource) {
		l.Printer.Note("nothing here is of %s; there are: %s", strings.Join(l.Filter.Resources, ", "), strings.Join(has, ", "))
	}
}

func (l *Log) take(m *sink.Stored) error {
	c, err := decode.Read(m)
	switch {
	case errors.Is(err, change.ErrForeignID):
		return nil
	case err != nil:
		l.Printer.Note("%v", err)
		return nil
	case c.ID.Op == change.Deleted && m.Value == nil && m.Key != nil && c.Object == nil && l.last == c.ID:
		return nil // the tombstone after a delete
	}
	l.last = c.ID
	line := lineOf(c)
	if l.has != nil {
		l.has[line.Resource] = true
	}
	if l.Diff {
		line.Diff = l.versions.compare(c)
	}
	if l.Silent {
		return nil
	}
	return l.show(line)
}

func (l *Log) show(line *Line) error {
	if !l.Filter.takes(line) || line.Time.Before(l.Since) {
		return nil
	}
	return l.Printer.Show(line)
}

// FollowEvents shows what a running exporter tells, until it ends.
func (l *Log) FollowEvents(events iter.Seq2[control.Event, error]) error {
	for event, err := range events {
		if err != nil {
			return err
		}
		switch event.Name {
		case "private":
			var why string
			if err := json.Unmarshal(event.Data, &why); err != nil {
				why = string(event.Data)
			}
			return errors.New(why)
		case "changes":
			if err := l.showChanges(event.Data); err != nil {
				return err
			}
		case "status":
			if l.Poll == 0 { // the changes before it were told
				return nil
			}
		}
	}
	return nil
}

func (l *Log) showChanges(data []byte) error {
	var told page.Changes
	if err := json.Unmarshal(data, &told); err != nil {
		return fmt.Errorf("read the exporter's changes: %w: use an exporter of this version", err)
	}
	if told.Missed > 0 {
		l.Printer.Note("%d changes came faster than they could be told", told.Missed)
	}
	for _, c := range told.Changes {
		if err := l.show(&Line{
			Time: c.Time, Op: c.Op, Resource: c.Resource, Namespace: c.Namespace, Name: c.Name, ResourceVersion: c.ResourceVersion, Reason: string(c.Reason),
		}); err != nil {
			return err
		}
	}
	return l.Printer.Flush()
}

// Style is how a Printer shows changes.
type Style struct {
	JSON   bool // a document a line
	Colour bool
	Brief  bool // one line for each change, with what changed in short
}

// Printer writes lines. Texts of others are made plain before they are put between its own, which may have colours.
type Printer struct {
	out   *bufio.Writer
	style Style
}

// NewPrinter makes a printer that writes to the screen with each Flush.
func NewPrinter(screen *Screen, style Style) *Printer {
	return &Printer{bufio.NewWriter(screen.to), style}
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
	colours := map[string]string{
		"added": green, "deleted": red, "gap": red, "updated": blue, "replaced": yellow, "sync": yellow,
	}
	return cmp.Or(colours[op], faint)
}

// paint is a text that is fit to be shown, in a colour.
func (p *Printer) paint(colour, text string) string {
	if !p.style.Colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Show writes one change.
func (p *Printer) Show(l *Line) error {
	if p.style.JSON {
		return json.NewEncoder(On(p.out)).Encode(l)
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
	at, op := l.Time.Local().Format("15:04:05.000"), fmt.Sprintf("%-14s", plain(l.Op))
	fmt.Fprintln(p.out, p.paint(faint, at)+"  "+p.paint(opColour(l.Op), op)+what+p.paint(faint, version))
	if p.style.Brief {
		return nil
	}
	for _, d := range l.Diff {
		fmt.Fprintln(p.out, "    "+plain(d.Path)+": "+p.value(red, d.Old)+" -> "+p.value(green, d.New))
	}
	return nil
}

// mostValue is how many characters of a value a line shows.
const mostValue = 160

func (p *Printer) value(colour string, text json.RawMessage) string {
	if text == nil {
		return p.paint(faint, "none")
	}
	return p.paint(colour, plain(ellipsis(string(text), mostValue)))
}

// Note tells what is no change. With JSON it is left out: each line is a change there.
func (p *Printer) Note(format string, args ...any) {
	if !p.style.JSON {
		fmt.Fprintln(p.out, p.paint(yellow, "-- "+plain(fmt.Sprintf(format, args...))))
	}
}

// Flush shows what was written. Its error is the first one of all writes.
func (p *Printer) Flush() error { return p.out.Flush() }

// Line is one change as exporter tail shows it, and with -o json its document.
type Line struct {
	Time            time.Time    `json:"time"`
	Op              string       `json:"op"`
	Resource        string       `json:"resource"`
	Namespace       string       `json:"namespace,omitempty"`
	Name            string       `json:"name,omitempty"`
	UID             string       `json:"uid,omitempty"`
	ResourceVersion string       `json:"resourceVersion,omitempty"`
	Reason          string       `json:"reason,omitempty"`
	Diff            []difference `json:"diff,omitempty"`

	ID                string          `json:"id,omitempty"`
	Snapshot          string          `json:"snapshot,omitempty"`
	FinalStateUnknown bool            `json:"finalStateUnknown,omitempty"`
	Trimmed           string          `json:"trimmed,omitempty"`
	BeforeOmitted     bool            `json:"beforeOmitted,omitempty"`
	Replayed          string          `json:"replayed,omitempty"`
	Changed           json.RawMessage `json:"changed,omitempty"` // pointers of what differs
	ChangedCut        bool            `json:"changedCut,omitempty"`
	Actor             json.RawMessage `json:"actor,omitempty"`    // the newest entries of managedFields
	Involved          json.RawMessage `json:"involved,omitempty"` // what is known of the object that an Event is about
	Object            json.RawMessage `json:"object,omitempty"`   // of a Secret what people are shown
	Patch             json.RawMessage `json:"patch,omitempty"`    // what changed since version Base, in the place of object; none of a Secret
	Base              string          `json:"base,omitempty"`
	Data              json.RawMessage `json:"data,omitempty"` // what a snapshot's begin and end and a gap say of themselves
}

func lineOf(c *decode.Change) *Line {
	line := &Line{
		ID: c.ID.String(), Snapshot: c.Snapshot, FinalStateUnknown: c.FinalStateUnknown, Object: c.Object, Data: c.Data, Time: c.Time, Op: c.ID.Op.String(), Resource: c.ID.Resource, Namespace: c.ID.Key.Namespace, Name: c.ID.Key.Name,
		UID: c.ID.UID, ResourceVersion: c.ID.ResourceVersion, Reason: string(c.Reason),
		Trimmed: c.Trimmed, BeforeOmitted: c.BeforeOmitted, Replayed: string(c.Replayed), Actor: c.Actor, Involved: c.Involved, Changed: c.Changed, ChangedCut: c.ChangedCut,
		Base: c.Base,
	}
	// A patch of a Secret may have its values anywhere, and that of a very deep object is deeper than JSON is read.
	if !isSecret(c.ID.Resource) && json.Valid(c.Patch) {
		line.Patch = c.Patch
	}
	if c.Object != nil && isSecret(c.ID.Resource) {
		line.Object, _ = json.Marshal(hideSecret(nil, parseObject(c.Object))) // it was decoded from JSON
	}
	if c.ID.Op == change.Actor {
		line.Resource, line.UID = c.Of.Resource, c.Of.UID
	}
	return line
}

// by names the user of an actor's request, and how sure that is, or the managers that changed the object last; "" where
// nobody says.
func (l *Line) by() string {
	if l.Op != change.Actor.String() {
		var actors []struct{ Manager string }
		if json.Unmarshal(l.Actor, &actors) != nil || len(actors) == 0 {
			return ""
		}
		var managers []string
		for _, a := range actors {
			managers = append(managers, a.Manager)
		}
		return "by " + strings.Join(managers, ", ")
	}
	var told struct {
		Certainty    string
		User         struct{ Username string }
		Impersonated *struct{ Username string }
	}
	if json.Unmarshal(l.Data, &told) != nil {
		return ""
	}
	by := "by " + told.User.Username
	if told.Impersonated != nil {
		by += " as " + told.Impersonated.Username
	}
	return by + ", " + told.Certainty
}

// summary says what changed in short, or what a frame or a gap is about.
func (l *Line) summary() string {
	if l.Op == change.Actor.String() {
		return l.by()
	}
	if l.UID != "" {
		return strings.Join(shorten(l.Diff), ", ")
	}
	var said struct {
		ResourceVersion, LastDelivered string
		Replaced, Deleted, Synced      int
		Limits                         change.Limits
	}
	if json.Unmarshal(l.Data, &said) != nil {
		return l.Reason
	}
	reason := l.Reason
	if limits := said.Limits.String(); limits != "" {
		reason += " of " + limits
	}
	switch l.Op {
	case change.SnapshotBegin.String():
		return fmt.Sprintf("%s, at version %s", reason, said.ResourceVersion)
	case change.SnapshotEnd.String():
		return fmt.Sprintf("%s: %d replaced, %d deleted, %d synced", reason, said.Replaced, said.Deleted, said.Synced)
	}
	if l.Op == change.Resolved.String() {
		return "complete up to version " + said.ResourceVersion
	}
	return fmt.Sprintf("%s, between versions %s and %s", l.Reason, said.LastDelivered, said.ResourceVersion)
}

// What a summary shows of differences.
const (
	mostDifferences = 3
	mostShort       = 24 // characters of a value
)

// shorten leaves out what controllers count with, and what does not fit.
func shorten(all []difference) (shown []string) {
	for _, d := range all {
		if !strings.HasPrefix(d.Path, "status.observedGeneration") {
			shown = append(shown, fmt.Sprintf("%s: %s -> %s", d.Path, short(d.Old), short(d.New)))
		}
	}
	if more := len(shown) - mostDifferences; more > 0 {
		shown = append(shown[:mostDifferences], fmt.Sprintf("and %d more", more))
	}
	return shown
}

func short(value json.RawMessage) string {
	if value == nil {
		return "none"
	}
	return ellipsis(string(value), mostShort)
}

// ellipsis cuts a text to so many characters.
func ellipsis(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// Filter chooses lines; its zero value takes all.
type Filter struct {
	Resources       []string // in lower case
	Namespace, Name string
	Ops             []string
}

// takesResource is of the lines of one resource, whatever else is chosen.
func (f *Filter) takesResource(resource string) bool {
	plural, _, _ := strings.Cut(resource, ".")
	return len(f.Resources) == 0 || slices.Contains(f.Resources, resource) || slices.Contains(f.Resources, plural)
}

func (f *Filter) takes(l *Line) bool {
	matches, err := path.Match(f.Name, l.Name)
	return f.takesResource(l.Resource) && (f.Namespace == "" || f.Namespace == l.Namespace) && (len(f.Ops) == 0 || slices.Contains(f.Ops, l.Op)) &&
		(f.Name == "" || f.Name == l.Name || err == nil && matches)
}
