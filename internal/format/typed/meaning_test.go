package typed_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/format/typed"
)

// meaning is an Avro schema as a reader understands it that knows nothing but the schema and its attributes. It makes
// objects of what a library reads, in another way than the package: as trees.
type meaning struct {
	kind   string
	digits int
	fields []meant
	of     *meaning
	null   bool
}

type meant struct {
	name, json string
	*meaning
}

func meaningOf(t testing.TB, schema []byte) meaning {
	t.Helper()
	var read any
	must(t, json.Unmarshal(schema, &read))
	return *meaningIn(read, map[string]*meaning{})
}

func meaningIn(schema any, named map[string]*meaning) *meaning {
	switch s := schema.(type) {
	case []any:
		m := *meaningIn(s[1], named)
		m.null = true
		return &m
	case string:
		if known := named[s]; known != nil {
			return known
		}
		return &meaning{kind: s}
	}
	s := schema.(map[string]any)
	m := &meaning{kind: s["type"].(string)}
	if kind, told := s["kubecdc.type"].(string); told {
		m.kind = kind
	}
	switch m.kind {
	case "record":
		named[s["name"].(string)] = m
		for _, field := range s["fields"].([]any) {
			f := field.(map[string]any)
			name := f["name"].(string)
			original, told := f["kubecdc.name"].(string)
			if !told {
				original = name
			}
			m.fields = append(m.fields, meant{name, original, meaningIn(f["type"], named)})
		}
	case "array":
		m.of = meaningIn(s["items"], named)
	case "map":
		m.of = meaningIn(s["values"], named)
	case "long":
		m.kind = "time"
		m.digits = int(s["kubecdc.digits"].(float64))
	}
	return m
}

// restore is the object of the outermost record.
func (m *meaning) restore(t testing.TB, value any) tree { return m.whole(t, value) }

// whole is an object that has a rest of its own.
func (m *meaning) whole(t testing.TB, value any) tree {
	record := value.(map[string]any)
	var rest tree
	if text, there := record[typed.RestName].(string); there {
		rest = treeOf(t, []byte(text))
	}
	return m.members(t, record, rest)
}

// value joins a value and what the rest has of it.
func (m *meaning) value(t testing.TB, value any, rest tree) tree {
	switch m.kind {
	case "record", "map":
		if m.kind == "record" && len(m.fields) > 0 && m.fields[0].name == typed.RestName {
			return m.whole(t, value)
		}
		return m.members(t, value.(map[string]any), rest)
	case "array":
		list, parts := []tree{}, membersOf(rest)
		for i, one := range value.([]any) {
			list = append(list, m.of.element(t, one, only(parts[strconv.Itoa(i)])))
		}
		return list
	}
	if rest != nil {
		return rest
	}
	return m.scalar(t, value)
}

func (m *meaning) element(t testing.TB, value any, rest tree) tree {
	if value == nil {
		return nil
	}
	return m.value(t, value, rest)
}

func membersOf(rest tree) map[string][]tree {
	members, _ := rest.(map[string][]tree)
	return members
}

func only(values []tree) tree {
	if len(values) == 1 {
		return values[0]
	}
	return nil
}

func (m *meaning) members(t testing.TB, record map[string]any, rest tree) tree {
	all, parts := map[string][]tree{}, membersOf(rest)
	for key, values := range parts {
		all[key] = values
	}
	if m.kind == "map" {
		for key, one := range record {
			all[key] = []tree{m.of.element(t, one, only(parts[key]))}
		}
		return all
	}
	for _, f := range m.fields {
		if one := record[f.name]; one != nil && f.name != typed.RestName {
			all[f.json] = []tree{f.value(t, one, only(parts[f.json]))}
		}
	}
	return all
}

func (m *meaning) scalar(t testing.TB, value any) tree {
	switch m.kind {
	case "json":
		return treeOf(t, []byte(value.(string)))
	case "int-or-string":
		if n := json.Number(value.(string)); isDecimal(string(n)) {
			return n
		}
	case "long":
		return json.Number(strconv.FormatInt(value.(int64), 10))
	case "double":
		text, err := json.Marshal(value.(float64))
		must(t, err)
		return json.Number(text)
	case "time":
		layout := "2006-01-02T15:04:05Z"
		if m.digits == 6 {
			layout = "2006-01-02T15:04:05.000000Z"
		}
		return value.(time.Time).UTC().Format(layout)
	}
	return value
}

// isDecimal says whether a text is an integer in the one spelling that json.Marshal has of it.
func isDecimal(text string) bool {
	var n json.Number
	if json.Unmarshal([]byte(text), &n) != nil {
		return false
	}
	for _, c := range text {
		if c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return text != "-0" && text != "null" && text[0] != '"' && text == string(n)
}
