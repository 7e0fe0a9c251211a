package audit

import (
	"bytes"
	"encoding/json"
)

// fields are the fields of an object of JSON, by their exact names. It is not unique where a name comes twice, where it
// is no object, or where more follows: two readers may then see two objects.
//
// Tenants write these bodies. encoding/json would take "ResourceVersion" for resourceVersion, and of two the last one;
// the API server reads neither like that.
func fields(text []byte) (all map[string]json.RawMessage, unique bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	all, unique = map[string]json.RawMessage{}, true
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, false
		}
		field, isText := name.(string)
		if _, twice := all[field]; twice || !isText {
			unique = false
		}
		all[field] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	return all, unique && len(bytes.TrimSpace(text[d.InputOffset():])) == 0
}

// textOf is the text of a field, "" where it is none.
func textOf(value json.RawMessage) (text string) {
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}
