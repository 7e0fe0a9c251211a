package audit

import (
	"encoding/json"
	"strconv"
	"strings"
)

// precondition is the resourceVersion at which alone the API server was to write, 0 where the request does not say, or
// not so that every reader understands it. With "0" a write is unconditional (the API conventions, concurrency
// control).
func (e *Event) precondition() uint64 {
	if e.Verb == verbPatch && isList(e.Request) {
		return tested(e.Request)
	}
	body, unique := fields(e.Request)
	if !unique || directs(body) {
		return 0
	}
	metadata, unique := fields(body["metadata"])
	if !unique || directs(metadata) {
		return 0
	}
	return versionOf(metadata["resourceVersion"])
}

// directs says whether a strategic merge patch tells there what to do with the fields, such as $patch and $retainKeys.
func directs(body map[string]json.RawMessage) bool {
	for name := range body {
		if strings.HasPrefix(name, "$") {
			return true
		}
	}
	return false
}

// tested is the version that a JSON Patch (RFC 6902) asks for or sets, where one operation alone touches it.
func tested(patch []byte) (version uint64) {
	var operations []json.RawMessage
	if json.Unmarshal(patch, &operations) != nil {
		return 0
	}
	for _, one := range operations {
		operation, unique := fields(one)
		switch path, from := textOf(operation["path"]), textOf(operation["from"]); {
		case !unique || operation["path"] == nil:
			return 0
		case !touchesVersion(path) && (operation["from"] == nil || !touchesVersion(from)):
			continue
		case version != 0 || path != versionPath || !sets(textOf(operation["op"])):
			return 0
		}
		if version = versionOf(operation["value"]); version == 0 {
			return 0
		}
	}
	return version
}

const versionPath = "/metadata/resourceVersion"

func sets(operation string) bool {
	return operation == "test" || operation == "add" || operation == "replace"
}

// touchesVersion says whether the JSON Pointer (RFC 6901) may be of the version, or of what that stands in. The API
// server takes pointers without the first slash, too, and reads them from the second part on.
func touchesVersion(pointer string) bool {
	return !strings.HasPrefix(pointer, "/") || pointer == "/metadata" || strings.HasPrefix(pointer, versionPath)
}

func versionOf(value json.RawMessage) uint64 {
	version, err := strconv.ParseUint(textOf(value), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// isList says whether the text is a list of JSON.
func isList(text []byte) bool { return len(text) > 0 && text[0] == '[' }
