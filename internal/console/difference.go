package console

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// difference is one place at which two versions of an object differ. Old and New are compact JSON, "" where there is
// nothing at the path.
type difference struct {
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
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

// compareObjects lists what differs, in the order of the paths. What changes with every version is left out.
func compareObjects(before, after any) []difference {
	found := appendDifferences(nil, "", before, after)
	return slices.DeleteFunc(found, func(d difference) bool {
		return d.Path == "metadata.resourceVersion" || d.Path == "metadata.generation" || strings.HasPrefix(d.Path, "metadata.managedFields")
	})
}

func appendDifferences(found []difference, path string, before, after any) []difference {
	switch a := before.(type) {
	case map[string]any:
		if b, same := after.(map[string]any); same {
			keys := maps.Clone(a)
			maps.Copy(keys, b)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				found = appendDifferences(found, joinPath(path, key), a[key], b[key])
			}
			return found
		}
	case []any:
		if b, same := after.([]any); same && len(a) == len(b) {
			for i := range a {
				found = appendDifferences(found, path+"["+strconv.Itoa(i)+"]", a[i], b[i])
			}
			return found
		}
	}
	was, is := rawText(before), rawText(after)
	if bytes.Equal(was, is) {
		return found
	}
	return append(found, difference{path, was, is})
}

// joinPath quotes a key that has a dot.
func joinPath(path, key string) string {
	switch {
	case strings.ContainsAny(key, ".[]' "):
		return path + "['" + key + "']"
	case path == "":
		return key
	}
	return path + "." + key
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

// hideSecrets takes the values out of a Secret's differences, whatever the configuration lets through (I9).
func hideSecrets(all []difference) {
	const hidden = `"(redacted)"`
	for i := range all {
		d := &all[i]
		first, _, _ := strings.Cut(strings.ReplaceAll(d.Path, "[", "."), ".")
		if first != "data" && first != "stringData" && !strings.HasPrefix(d.Path, "metadata.annotations") {
			continue
		}
		if d.Old != nil {
			d.Old = json.RawMessage(hidden)
		}
		if d.New != nil {
			d.New = json.RawMessage(hidden)
		}
	}
}
