package console

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/decode"
)

// difference is one place at which two versions of an object differ. Old and New are compact JSON, "" where there is
// nothing at the path.
type difference struct {
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

// mostRemembered is how many objects are remembered. The one that was remembered first is forgotten then (I6).
const mostRemembered = 20_000

// versions are the last version of each object.
type versions struct {
	last  map[string]told // by uid
	order []string        // of the uids
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
func (v *versions) compare(c *decode.Change) []difference {
	uid := c.ID.UID
	if uid == "" {
		return nil
	}
	before, known := v.last[uid]
	if c.ID.Op == change.Deleted {
		delete(v.last, uid)
		return nil
	}
	after := before.of(c)
	if !known {
		v.order = append(v.order, uid)
	}
	v.last[uid] = told{c.ID.ResourceVersion, after}
	for len(v.order) > mostRemembered {
		delete(v.last, v.order[0])
		v.order = v.order[1:]
	}
	if before.object == nil || after == nil {
		return nil
	}
	return compareObjects(c.ID.Resource, before.object, after)
}

// comparison finds the places at which two versions of an object differ.
type comparison struct {
	secret bool // values are hidden
	found  []difference
}

// compareObjects lists what differs, in the order of the paths. What changes with every version is left out.
func compareObjects(resource string, before, after any) []difference {
	c := comparison{secret: isSecret(resource)}
	c.compare(place{}, before, after)
	return slices.DeleteFunc(c.found, func(d difference) bool {
		return d.Path == "metadata.resourceVersion" || d.Path == "metadata.generation" || strings.HasPrefix(d.Path, "metadata.managedFields")
	})
}

// place is where in an object something is.
type place struct {
	path []string // keys, and "" for an index
	text string
}

func (p place) key(key string) place {
	text := p.text + "." + key
	switch {
	case strings.ContainsAny(key, ".[]' "):
		text = p.text + "['" + key + "']"
	case p.text == "":
		text = key
	}
	return place{append(p.path, key), text}
}

func (p place) index(i int) place {
	return place{append(p.path, ""), p.text + "[" + strconv.Itoa(i) + "]"}
}

func (c *comparison) compare(at place, before, after any) {
	switch a := before.(type) {
	case map[string]any:
		if b, same := after.(map[string]any); same {
			keys := maps.Clone(a)
			maps.Copy(keys, b)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				c.compare(at.key(key), a[key], b[key])
			}
			return
		}
	case []any:
		if b, same := after.([]any); same && len(a) == len(b) {
			for i := range a {
				c.compare(at.index(i), a[i], b[i])
			}
			return
		}
	}
	if bytes.Equal(rawText(before), rawText(after)) {
		return
	}
	if c.secret {
		before, after = hideSecret(at.path, before), hideSecret(at.path, after)
	}
	c.found = append(c.found, difference{at.text, rawText(before), rawText(after)})
}

func rawText(value any) json.RawMessage {
	if value == nil {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil { // it was decoded from JSON
		return nil
	}
	return text
}
