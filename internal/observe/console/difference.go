package console

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/format/decode"
	"github.com/kubecdc/kubecdc/internal/sink/deadletter"
)

// difference is one place at which two versions of an object differ. Old and New are compact JSON, "" where there is
// nothing at the path.
type difference struct {
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

// mostRemembered is how many objects are remembered. The one that changed longest ago is forgotten then (I6).
const mostRemembered = 20_000

// versions are the last version of each object, by its uid.
type versions struct{ *simplelru.LRU[string, told] }

func newVersions() versions {
	last, _ := simplelru.NewLRU[string, told](mostRemembered, nil) // of a size above 0 it cannot fail
	return versions{last}
}

// told is a version of an object, decoded.
type told struct {
	version string
	object  any
}

// of is what the change makes of the object, nil where it is a patch of a version that is not known.
func (t told) of(c *decode.Change) any {
	if c.Patch == nil {
		return parseObject(c.Object)
	}
	before, err := json.Marshal(t.object)
	if err != nil || t.object == nil || t.version != c.Base {
		return nil
	}
	patch, err := jsonpatch.DecodePatch(c.Patch)
	if err != nil {
		return nil
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil
	}
	return parseObject(after)
}

// compare remembers the object, and says what changed since the version before, nil where none is known.
func (v versions) compare(c *decode.Change) []difference {
	uid := c.ID.UID
	if uid == "" {
		return nil
	}
	before, _ := v.Peek(uid)
	if c.ID.Op == change.Deleted {
		v.Remove(uid)
		return nil
	}
	after := before.of(c)
	v.Add(uid, told{c.ID.ResourceVersion, after})
	if before.object == nil || after == nil {
		return nil
	}
	return compareObjects(c.ID.Resource, before.object, after)
}

// compareObjects lists what differs, in the order of the paths. What changes with every version is left out.
func compareObjects(resource string, before, after any) []difference {
	return slices.DeleteFunc(compare(place{secret: isSecret(resource)}, before, after), func(d difference) bool {
		return d.Path == "metadata.resourceVersion" || d.Path == "metadata.generation" || strings.HasPrefix(d.Path, "metadata.managedFields")
	})
}

// place is where in an object something is.
type place struct {
	path   []string // keys, and "" for an index
	text   string
	secret bool // values are hidden
}

func (p place) key(key string) place {
	text := p.text + "." + key
	switch {
	case strings.ContainsAny(key, ".[]' "):
		text = p.text + "['" + key + "']"
	case p.text == "":
		text = key
	}
	return place{append(p.path, key), text, p.secret}
}

func (p place) index(i int) place {
	return place{append(p.path, ""), p.text + "[" + strconv.Itoa(i) + "]", p.secret}
}

func compare(at place, before, after any) (found []difference) {
	switch a := before.(type) {
	case map[string]any:
		if b, same := after.(map[string]any); same {
			keys := maps.Clone(a)
			maps.Copy(keys, b)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				found = append(found, compare(at.key(key), a[key], b[key])...)
			}
			return found
		}
	case []any:
		if b, same := after.([]any); same && len(a) == len(b) {
			for i := range a {
				found = append(found, compare(at.index(i), a[i], b[i])...)
			}
			return found
		}
	}
	if bytes.Equal(rawText(before), rawText(after)) {
		return nil
	}
	if at.secret {
		before, after = hideSecret(at.path, before), hideSecret(at.path, after)
	}
	return []difference{{at.text, rawText(before), rawText(after)}}
}

func rawText(value any) json.RawMessage {
	if value == nil {
		return nil
	}
	text, _ := json.Marshal(value) // it was decoded from JSON
	return text
}

// PrintLetters prints a line for the head of each letter that can be read, and returns an error for what cannot.
func PrintLetters(heads iter.Seq2[*deadletter.Letter, error], asJSON bool, out io.Writer) (n int, err error) {
	head := []any{"ID", "SINK", "TIME", "REASON", "STREAM", "OBJECT", "RESOURCEVERSION", "OP", "BYTES"}
	return printAll(heads, asJSON, out, columns[*deadletter.Letter]{head, func(l *deadletter.Letter) []any {
		return []any{l.ID, l.Sink, l.Time.Format(time.RFC3339), l.Reason, l.Stream, l.ObjectKey(), l.ResourceVersion, l.Op, max(0, l.Body.Value)}
	}})
}

// PrintReplayed prints what became of letters that were sent again, and says how many were kept.
func PrintReplayed(replayed *control.Replayed, out io.Writer) (kept int, err error) {
	table := newGrid(out)
	table.row("ID", "SINK", "STREAM", "OBJECT", "RESOURCEVERSION", "RESULT")
	for _, l := range replayed.Letters {
		result := "delivered"
		switch {
		case !l.Delivered:
			kept++
			result = "kept: " + l.Kept
		case l.LeftOut != "":
			result = "delivered without " + l.LeftOut + ", to fit into the sink"
		}
		table.row(l.ID, l.Sink, l.Stream, l.Object, l.ResourceVersion, result)
	}
	return kept, table.Flush()
}

// PrintLetter prints one letter whole, as JSON, but for what is hidden of Secrets.
func PrintLetter(letter *deadletter.Letter, out io.Writer) error {
	if letter.Group == "" && isSecret(letter.Resource) { // its file keeps the values
		for i := range letter.Headers {
			if h := &letter.Headers[i]; strings.HasSuffix(h.Name, "before") { // of CloudEvents in binary mode
				h.Value = redacted
			}
		}
		if letter.Value != nil {
			letter.Value, _ = json.Marshal(hideMessage(parseObject(letter.Value))) // it was decoded from JSON
		}
	}
	document, err := letter.Document()
	if err == nil {
		_, err = out.Write(document)
	}
	return err
}

// What a person is shown of a Secret is the same in every command, whatever the configuration lets through to the sinks
// (I9): keyed hashes as they are, which tell whether a value has changed, and (redacted) for any other value.
const redacted = "(redacted)"

// isSecret takes a resource as records name it.
func isSecret(resource string) bool { return resource == "secrets" }

// hideSecret takes the values out of a Secret, or out of what is at a path of it. The path's segments are keys.
func hideSecret(path []string, value any) any {
	first := ""
	if len(path) > 0 {
		first = path[0]
	}
	switch {
	case first == "data", first == "stringData", first == "metadata" && len(path) > 1 && path[1] == "annotations":
		return hideValues(value)
	case len(path) > 1 || first != "" && first != "metadata":
		return value
	}
	fields, isMap := value.(map[string]any)
	if !isMap {
		return value
	}
	hidden := map[string]any{}
	for key, field := range fields {
		hidden[key] = hideSecret(append(path, key), field)
	}
	return hidden
}

// hideValues leaves keys and keyed hashes.
func hideValues(value any) any {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		if isHash(v) {
			return v
		}
	case map[string]any:
		hidden := map[string]any{}
		for key, field := range v {
			hidden[key] = hideValues(field)
		}
		return hidden
	}
	return redacted
}

// isHash says whether the text looks as transform writes a keyed hash.
func isHash(text string) bool {
	digits, found := strings.CutPrefix(text, "hmac-sha256:")
	return found && len(digits) == 32 && strings.Trim(digits, "0123456789abcdef") == ""
}

// hideMessage knows the forms that package encode gives a value. Of another one it leaves nothing.
func hideMessage(value any) any {
	message, isMap := value.(map[string]any)
	if !isMap {
		return redacted
	}
	_, isEvent := message["specversion"]
	_, isEnvelope := message["source"]
	if !isEvent && !isEnvelope {
		return hideSecret(nil, message)
	}
	for _, state := range []string{"data", "before", "after"} {
		switch object := message[state].(type) {
		case nil:
		case map[string]any:
			message[state] = hideSecret(nil, object)
		default: // the text of an object
			message[state] = redacted
		}
	}
	return message
}
