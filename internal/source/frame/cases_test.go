package frame

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// frameCase is a line. What it means the oracle says, but for lines that no API server writes.
type frameCase struct {
	name, line string
	want       string // type, name and JSON of such a line
	err        string // contained in the error
}

const longText = "0123456789012345678901234567890123456789"

func frameCases() []frameCase {
	return []frameCase{
		{name: "built-in",
			line: `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u-1","resourceVersion":"12","generation":1,"labels":{"name":"no"},"annotations":{"x":"y"},"managedFields":[{"manager":"m","fieldsV1":{"f:metadata":{"k:{\"name\":\"x\"}":{}}}}]},"spec":{"name":"no"},"status":{}}}`},
		{name: "custom resource, cuts before the strings",
			line: `{"type":"DELETED","object":{"apiVersion":"ex.io/v1","data":[1,2],"kind":"Widget","metadata":{"annotations":{"` + lastApplied + `":"{\"a\":\"b\\\\\"}\n","z":"1"},"managedFields":[],"name":"w","namespace":"ns","resourceVersion":"7","uid":"u"},"spec":{"n":1.0}}}`},
		{name: "bookmark",
			line: `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"10128"},"spec":{"containers":null},"status":{}}}`},
		{name: "bookmark with a creation time of null",
			line: `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"8","creationTimestamp":null}}}`},
		{name: "error",
			line: `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2737)","reason":"Expired","code":410}}`},
		{name: "type after object",
			line: `{"object":{"metadata":{"name":"a","managedFields":null}},"type":"MODIFIED"}`},
		{name: "more than type and object",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a"}},"more":{"object":1}}`,
			want: `ADDED a {"metadata":{"name":"a"}}`},
		{name: "the last object counts",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a"}},"object":{"metadata":{"name":"b"}}}`,
			want: `ADDED b {"metadata":{"name":"b"}}`},
		{name: "space",
			line: ` { "type" : "ADDED" , "object" : { "metadata" : { "managedFields" : [ ] , "name" : "a" , "annotations" : { "b" : "c" , "` + lastApplied + `" : "x" } } } } `},
		{name: "space behind a cut",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[]  ,	"uid":"u"}}}`},
		{name: "escaped keys",
			line: `{"type":"ADDED","object":{"met\u0061data":{"n\u0061me":"a","m\u0061nagedFields":1,"annot\u0061tions":{"\u006bubectl.kubernetes.io/last-applied-configuration":"x"}}}}`},
		{name: "escaped keys where they do not matter",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a","labels":{"a\u0061":"b"}},"spec":{"met\u0061data":1}}}`},
		{name: "metadata twice",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a","uid":"u","managedFields":[1]},"metadata":{"managedFields":[2],"name":"b"}}}`,
			want: `ADDED b {"metadata":{"name":"a","uid":"u"},"metadata":{"name":"b"}}`},
		{name: "brackets in the names of managed fields",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[{"manager":"x}],","operation":"Update","fieldsV1":{"f:data":{"f:y}],":{},"f:z":{}}}}]},"spec":{}}}`},
		{name: "the end of the metadata in the name of a managed field",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[{"manager":"m","fieldsV1":{"f:data":{"f:y}]},":{},"f:z":{}}}}]},"spec":{}}}`},
		{name: "the end of the frame in the name of a managed field",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[{"manager":"m","fieldsV1":{"f:data":{"f:y}]}}}":{}}}}]},"spec":{}}}`},
		{name: "arrays in managed fields",
			line: `{"type":"ADDED","object":{"metadata":{"managedFields":[{"a":{"b":[{}]},"z":{}}],"name":"a"},"spec":{}}}`},
		{name: "kind behind the metadata",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a"},"kind":"Pod","spec":{"x":"}}}"},"status":{"a":{}}}}`},
		{name: "more than type and object, behind what is looked at",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":{}},"more":1}`,
			want: `ADDED a {"metadata":{"name":"a"},"spec":{}}`},
		{name: "keys twice",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a","name":"b","annotations":{"x":"y"},"annotations":{"` + lastApplied + `":"1","` + lastApplied + `":"2"},"managedFields":1,"managedFields":2}}}`},
		{name: "only cuts", line: `{"type":"ADDED","object":{"metadata":{"managedFields":[]}}}`},
		{name: "cuts only, twice",
			line: `{"type":"ADDED","object":{"metadata":{"managedFields":[],"managedFields":[]}}}`},
		{name: "null metadata", line: `{"type":"ADDED","object":{"metadata":null}}`},
		{name: "no metadata", line: `{"type":"ADDED","object":{}}`},
		{name: "nulls",
			line: `{"type":"ADDED","object":{"metadata":{"name":null,"namespace":null,"uid":null,"resourceVersion":null,"annotations":null,"managedFields":null,"labels":null}}}`},
		{name: "escaped values",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a\u003cb\"\\\u00e9\ud83d\ude00","namespace":"","uid":"\t","resourceVersion":"\u0031"}}}`},
		{name: "names of roles",
			line: `{"type":"ADDED","object":{"metadata":{"name":"system:node:a b té 😀 ` + longText + `"}}}`},
		{name: "no UTF-8", line: `{"type":"ADDED","object":{"metadata":{"name":"a` + "\xff" + `"}}}`},
		{name: "brackets and quotes in strings",
			line: `{"type":"ADDED","object":{"data":{"a":"}}]]\"{{","b":"\\"},"metadata":{"labels":{"x":"\\\"}"},"name":"a"},"z":["\\\\\"]"]}}`},
		{name: "name is a number",
			line: `{"type":"ADDED","object":{"metadata":{"name":1}}}`, err: "is no string"},
		{name: "uid is an object",
			line: `{"type":"ADDED","object":{"metadata":{"uid":{}}}}`, err: "is no string"},
		{name: "metadata is a string",
			line: `{"type":"ADDED","object":{"metadata":"a"}}`, err: "metadata is no object"},
		{name: "annotations are an array",
			line: `{"type":"ADDED","object":{"metadata":{"annotations":[]}}}`, err: "annotations is no object"},
		{name: "no object", line: `{"type":"ADDED"}`, err: "no object"},
		{name: "null object", line: `{"type":"ADDED","object":null}`, err: "no object"},
		{name: "no type", line: `{"object":{}}`, err: "no type"},
		{name: "type is a number", line: `{"type":1,"object":{}}`, err: "no type"},
		{name: "unknown type", line: `{"type":"SYNC","object":{}}`, err: `unknown type "SYNC"`},
		{name: "error without a status", line: `{"type":"ERROR","object":[]}`, err: "no object"},
		{name: "an array", line: `[]`, err: "no type"},
		{name: "a Status in place of a frame",
			line: `{"kind":"Status","code":410}`, err: "no type"},
		{name: "text", line: `404 page not found`, err: "invalid character"},
		{name: "two frames on a line",
			line: `{"type":"ADDED","object":{}}{"type":"ADDED","object":{}}`, err: "after top-level value"},
		{name: "half a frame",
			line: `{"type":"ADDED","object":{"metadata":{"name":"a"`, err: "unexpected end"},
	}
}

func TestFrames(t *testing.T) {
	for _, c := range frameCases() {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(c.line+"\n"), Options{})
			f, err := r.Next()
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got error %v, want %q in it", err, c.err)
				}
				if _, ok := errors.AsType[*SyntaxError](err); !ok {
					t.Errorf("got a %T", err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s %s %s", f.Type, f.Object.Name, f.Object.JSON); c.want != "" && got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			} else if c.want == "" && c.err == "" && !isWritten([]byte(c.line)) {
				t.Error("nothing says what it means")
			}
			for _, opts := range cutEachAlone {
				if err := checkFrame([]byte(c.line), opts); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestCutsLeaveJSON puts what is cut at every place among its neighbours.
func TestCutsLeaveJSON(t *testing.T) {
	for _, annotations := range [][]string{{"x"}, {"a", "x"}, {"x", "b"}, {"a", "x", "b"}, {}} {
		for _, order := range []string{"A", "M", "AM", "MA", "nA", "An", "nM", "Mn", "nAM", "AnM", "AMn", "MAn", "MnA", "nMA"} {
			var notes []string
			for _, key := range annotations {
				notes = append(notes, strings.Replace(`"`+key+`":"va\"lue"`, `"x"`, `"`+lastApplied+`"`, 1))
			}
			var members []string
			for _, m := range order {
				members = append(members, map[rune]string{
					'A': `"annotations":{` + strings.Join(notes, ",") + `}`,
					'M': `"managedFields":[{"a":"}"}]`,
					'n': `"name":"n"`,
				}[m])
			}
			for _, sep := range []string{",", " ,", ", "} {
				line := `{"type":"ADDED","object":{"metadata":{` + strings.Join(members, sep) + `}}}`
				for _, opts := range cutEachAlone {
					if err := checkFrame([]byte(line), opts); err != nil {
						t.Errorf("%s\n%v", line, err)
					}
				}
			}
		}
	}
}

// TestTruncatedAnywhere cuts a stream at every byte: the frames before are there, and half a frame never is.
func TestTruncatedAnywhere(t *testing.T) {
	for _, c := range frameCases() {
		if c.err != "" {
			continue
		}
		text := c.line + "\n" + c.line + "\n"
		for n := range len(text) {
			r := NewReader(strings.NewReader(text[:n]), Options{})
			frames, err := readAll(r)
			want := n / (len(c.line) + 1)
			clean := strings.TrimSpace(text[want*(len(c.line)+1):n]) == ""
			if len(frames) != want || clean != (err == nil) {
				t.Fatalf("%s: of %d bytes %d frames, %v", c.name, n, len(frames), err)
			}
		}
		for n := range len(c.line) {
			if err := checkFrame([]byte(c.line[:n]), Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
