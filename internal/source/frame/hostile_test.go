package frame

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// hostile is an object whose maps have keys and values that a tenant has chosen, as an API server writes it. Each key
// is in managedFields, too, in the name of a field and in that of a list's element (structured-merge-diff's
// PathElement).
type hostile struct {
	texts  []string
	custom bool // keys in alphabetical order, as of a custom resource
	last   bool // managedFields are the last of the metadata
	nested bool // a field of the object is called as those of the metadata
}

// compact is what an API server's encoder writes: Go's, without a line's end.
func compact(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (h hostile) free() map[string]string {
	free := map[string]string{"": "x"}
	for i, text := range h.texts {
		free[text] = h.texts[len(h.texts)-1-i]
	}
	return free
}

// managed is metadata.managedFields.
func (h hostile) managed() string {
	fields := map[string]any{".": map[string]any{}}
	for _, text := range h.texts {
		fields["f:"+text] = map[string]any{}
		fields["k:"+compact(map[string]string{"name": text})] = map[string]any{".": map[string]any{}, "f:" + text: map[string]any{}}
		fields["v:"+compact(text)] = map[string]any{}
	}
	var entries []string
	for range 2 {
		entries = append(entries, `{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:volumeAttributes":`+
			compact(fields)+`}}}`)
	}
	return "[" + strings.Join(entries, ",") + "]"
}

func (h hostile) metadata() string {
	annotations := h.free()
	annotations[lastApplied] = compact(h.free())
	members := []string{
		`"annotations":` + compact(annotations), `"labels":` + compact(h.free()), `"managedFields":` + h.managed(),
		`"name":"a"`, `"namespace":"n"`, `"resourceVersion":"7"`, `"uid":"u"`,
	}
	if h.last {
		members[2], members[6] = members[6], members[2]
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (h hostile) object(front bool) string {
	spec := `"spec":{"volumeAttributes":` + compact(h.free()) + `},"status":{}`
	if h.nested {
		spec = `"spec":{"metadata":{"managedFields":` + h.managed() + `,"name":"b","resourceVersion":"8"},"volumeAttributes":` + compact(h.free()) + `}`
	}
	kind := `"kind":"Pod","apiVersion":"v1",`
	if h.custom { // a field of its own, which stands before the metadata
		kind = `"apiVersion":"ex.io/v1","data":` + compact(h.free()) + `,"kind":"Widget",`
		front = true
	}
	if !front {
		kind = ""
	}
	return "{" + kind + `"metadata":` + h.metadata() + "," + spec + "}"
}

func (h hostile) page() string {
	meta := `"metadata":{"resourceVersion":"9","continue":"t"}`
	items := `"items":[` + strings.Join([]string{h.object(false), small(1), h.object(false), h.object(true)}, ",") + "]"
	if h.custom {
		return `{"apiVersion":"ex.io/v1",` + items + `,"kind":"WidgetList",` + meta + "}\n"
	}
	return `{"kind":"PodList","apiVersion":"v1",` + meta + "," + items + "}\n"
}

// check holds list and frame against encoding/json. Both are valid, so that nothing of it is left out.
func (h hostile) check(t *testing.T, n uint8) {
	t.Helper()
	line, page := []byte(strings.TrimSuffix(watchLine(Modified, h.object(true)), "\n")), []byte(h.page())
	if !json.Valid(line) || !json.Valid(page) || !isWritten(line) {
		t.Fatalf("no API server writes\n%s\n%s", line, page)
	}
	if err := checkFrame(line, optionsFor(n)); err != nil {
		t.Errorf("frame with %q: %v\n%s", h.texts, err, line)
	}
	if err := checkList(page, optionsFor(n), readerFor(n)); err != nil {
		t.Errorf("list with %q: %v\n%s", h.texts, err, page)
	}
}

func hostileOf(n uint8, texts ...string) hostile {
	return hostile{texts: texts, custom: n&1 != 0, last: n&2 != 0, nested: n&4 != 0}
}

// TestI4KeysMadeOfBracketsTruncateNothing: whoever may write an object may choose keys, and what is in a string is no
// JSON.
func TestI4KeysMadeOfBracketsTruncateNothing(t *testing.T) {
	for _, text := range []string{
		`a}]}},`, `}]`, `}],`, `}]}`, `}]},"spec":{}}`, `}],"name":"b"`, `"}],"name":"b"`, `\"}],"`, `\`, `\\`, `"`, `:`, `:{"`, `}]}},":"`, `}],":{}`,
		`[`, `]`, `{`, `}`, `managedFields`, `metadata`, `"managedFields":[{}],"`, `}]},"a`, `}],"a":"`, "\u2028}],", "}],\n", "a\x00}],", `}],"`, "}]}},{\"metadata\"",
	} {
		for n := range uint8(8) {
			hostileOf(n, text).check(t, n<<2)
			hostileOf(n, "a", text, "z").check(t, n*37)
		}
	}
}

// tokensOf are what a hostile key is made of.
func tokensOf() []string {
	return []string{
		"}", "]", "{", "[", ",", ":", `"`, `\`, "a", "}]", `,"a":`, `":{},"`, "managedFields", "metadata", "f:", "k:", "\n", "\u2028", "<", "é", "\x01", "1", " ",
		`"kubectl.kubernetes.io/last-applied-configuration":"`,
	}
}

// hostileText is up to eight tokens, as the choices say.
func hostileText(choices []byte) string {
	var text strings.Builder
	tokens := tokensOf()
	for _, c := range choices[:min(len(choices), 8)] {
		text.WriteString(tokens[int(c)%len(tokens)])
	}
	return text.String()
}

// TestHostileTexts has texts of what a hostile key is made of.
func TestHostileTexts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2_000 {
		var texts []string
		for range 1 + rnd.IntN(3) {
			choices := make([]byte, 1+rnd.IntN(8))
			for i := range choices {
				choices[i] = byte(rnd.Uint32())
			}
			texts = append(texts, hostileText(choices))
		}
		if hostileOf(uint8(rnd.Uint32()), texts...).check(t, uint8(rnd.Uint32())); t.Failed() {
			return
		}
	}
}
