package console

import (
	"encoding/json"
	"strings"

	"github.com/kubecdc/kubecdc/internal/deadletter"
)

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

// hideLetter takes the values out of the letter of a Secret. Its file keeps them.
func hideLetter(letter *deadletter.Letter) error {
	if letter.Group != "" || !isSecret(letter.Resource) {
		return nil
	}
	for i := range letter.Headers {
		if h := &letter.Headers[i]; strings.HasSuffix(h.Name, "before") { // of CloudEvents in binary mode
			h.Value = redacted
		}
	}
	if letter.Value == nil {
		return nil
	}
	value, err := json.Marshal(hideMessage(parseObject(letter.Value)))
	letter.Value = value
	return err
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
