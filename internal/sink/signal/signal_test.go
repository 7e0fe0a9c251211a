package signal

import (
	"fmt"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// published are the messages of Debezium's page "Sending signals to a Debezium connector", of a Kafka topic and of a
// table, whose column data is a text.
func published() map[string]Signal {
	products := []string{"schema1.products"}
	return map[string]Signal{
		`{"type":"execute-snapshot","data": {"data-collections": ["schema1.table1", "schema1.table2"], "type": "INCREMENTAL"}}`: {
			Type: Execute, Collections: []string{"schema1.table1", "schema1.table2"}},
		`{"type":"execute-snapshot","data": {"data-collections": ["schema1.products"], "type": "INCREMENTAL", "additional-conditions": [{"data-collection": "schema1.products" ,"filter":"color='blue'"}]}}`: {
			Type: Execute, Collections: products, Conditions: []Condition{{"schema1.products", "color='blue'"}}},
		`{"type":"execute-snapshot","data": {"data-collections": ["schema1.products"], "type": "INCREMENTAL", "additional-condition": "color='blue'"}}`: {
			Type: Execute, Collections: products, Conditions: []Condition{{"", "color='blue'"}}},
		`{"type":"execute-snapshot","data": {"data-collections": ["schema1.products"], "type": "BLOCKING", "surrogate-key": "id"}}`: {
			Type: Execute, Collections: products},
		`{"type":"stop-snapshot","data": {"data-collections": ["schema1.table1", "schema1.table2"], "type": "INCREMENTAL"}}`: {
			Type: Stop, Collections: []string{"schema1.table1", "schema1.table2"}},
		`{"id":"d139b9b7","type":"pause-snapshot","data":{"type":"incremental"}}`:                                           {ID: "d139b9b7", Type: Pause},
		`{"id":"d139b9b8","type":"resume-snapshot"}`:                                                                        {ID: "d139b9b8", Type: Resume},
		`{"id":"924e3ff8-2245-43ca-ba77-2af9af02fa07","type":"log","data":"{\"message\":\"Signal message at offset {}\"}"}`: {ID: "924e3ff8-2245-43ca-ba77-2af9af02fa07", Type: Log, Message: "Signal message at offset {}"},
	}
}

func TestDebeziumsPublishedSignalsAreRead(t *testing.T) {
	for text, want := range published() {
		if got, err := Parse([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nis %+v, %v\nwant %+v", text, got, err, want)
		}
	}
}

// TestI6HostileSignalsAreRefusedInFewWords.
func TestI6HostileSignalsAreRefusedInFewWords(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for text, want := range map[string]string{
		"":                                   "read the signal: unexpected end of JSON input: want JSON such as",
		"[]":                                 "read the signal: json: cannot unmarshal array",
		`{"type":7}`:                         "read the signal: json: cannot unmarshal number",
		strings.Repeat("[", 60_000):          "read the signal",
		strings.Repeat(" ", 100_000):         "a signal of 100000 bytes: want 65536 at most",
		`{"type":"` + long + `"}`:            `type "xxxxxxxxxxxxxxxxxxxx": want one of execute-snapshot, stop-snapshot,`,
		`{"type":"log","id":"` + long + `"}`: "an id of 5000 bytes: want 256 at most",
		`{"type":"execute-snapshot"}`:        "data-collections is missing: want",
		`{"type":"execute-snapshot","data":{"data-collections":["` + long + `"]}}`:                         "a data-collection of more than 1024 bytes",
		`{"type":"execute-snapshot","data":{"data-collections":["a"` + strings.Repeat(`,"a"`, 100) + `]}}`: "101 data-collections and 0 additional-conditions: want 100 at most",
		`{"type":"execute-snapshot","data":{"data-collections":["pods"],"type":"other"}}`:                  `type "other" of the snapshot: want incremental, or blocking`,
		`{"type":"execute-snapshot","data":"{"}`:                                                           "read data of the signal: unexpected end of JSON input",
		`{"type":"execute-snapshot","data":[1]}`:                                                           "read data of the signal: json: cannot unmarshal array",
	} {
		s, err := Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("%.60s is refused with %v, want %s", text, err, want)
		}
		if len(s.ID) > MaxID || s.Type != "" {
			t.Errorf("%.60s: what is repeated of it is %.40q %.40q", text, s.ID, s.Type)
		}
	}
}

// matching are the streams that a shell pattern stands for.
func matching(streams ...string) Matcher {
	return func(pattern string) (found []string, err error) {
		for _, s := range streams {
			if ok, _ := path.Match(pattern, s); ok {
				found = append(found, s)
			}
		}
		if found == nil {
			err = fmt.Errorf("no stream %s", pattern)
		}
		return found, err
	}
}

func TestConditionsAreOfTheChosenCollectionsAlone(t *testing.T) {
	all := matching("pods", "secrets", "services")
	blue := change.Limits{Selector: "color=blue"}
	for _, c := range []struct {
		signal Signal
		want   []Part
		err    string
	}{
		{Signal{Collections: []string{"s*", "pods", "pods"}}, []Part{{Stream: "pods"}, {Stream: "secrets"}, {Stream: "services"}}, ""},
		{Signal{Collections: []string{"*"}, Conditions: []Condition{{"s*", "selector='color=blue'"}}},
			[]Part{{Stream: "pods"}, {Stream: "secrets", Limits: blue}, {Stream: "services", Limits: blue}}, ""},
		{Signal{Collections: []string{"pods"}, Conditions: []Condition{{"", "selector='color=blue'"}}}, []Part{{Stream: "pods", Limits: blue}}, ""},
		{Signal{Collections: []string{"none"}}, nil, "no stream none"},
		{Signal{Collections: []string{"pods"}, Conditions: []Condition{{"secrets", "name='x'"}}}, nil,
			`the additional-condition of "secrets" is of no chosen data-collection: choose of pods`},
		{Signal{Collections: []string{"pods"}, Conditions: []Condition{{"pods", "name='x'"}, {"p*", "name='y'"}}}, nil,
			"two additional-conditions are of pods: join them with AND"},
		{Signal{Collections: []string{"pods"}, Conditions: []Condition{{"none", "name='y'"}}}, nil, "additional-conditions: no stream none"},
		{Signal{Collections: []string{"pods"}, Conditions: []Condition{{"pods", "color='blue'"}}}, nil,
			`filter "color='blue'": an API server cannot select by "color='blue'": want namespace='shop', name='web'`},
	} {
		got, err := c.signal.Parts(all)
		if !reflect.DeepEqual(got, c.want) || c.err == "" != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%+v: got %+v, %v\nwant %+v, %s", c.signal, got, err, c.want, c.err)
		}
	}
}

func FuzzSignals(f *testing.F) {
	for text := range published() {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"type":"execute-snapshot","data":{"data-collections":["pods"],"additional-condition":"selector='\"ıİ\" in (a)'"}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		s, err := Parse(value)
		if err != nil {
			return
		}
		if _, err := s.Parts(matching("pods", "schema1.products")); err != nil && len(err.Error()) > 20_000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}
