package frame

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestTheNewestEntriesSayWhoItWas, both where two are newest, whatever else stands in managedFields and whoever has
// written it.
func TestTheNewestEntriesSayWhoItWas(t *testing.T) {
	entry := func(manager, at, more string) string {
		return fmt.Sprintf(`{"manager":%q,"operation":"Update","apiVersion":"v1","time":%q,"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{}}}}%s}`, manager, at, more)
	}
	const early, late = "2026-11-21T06:51:37Z", "2026-11-21T06:51:38Z"
	var many []string
	for i := range 1000 {
		many = append(many, entry(fmt.Sprint("m", i), late, ""))
	}
	for name, c := range map[string]struct{ fields, want string }{
		"one":                   {entry("kubectl", early, ""), `[{"manager":"kubectl","operation":"Update","time":"` + early + `"}]`},
		"the newest is first":   {entry("b", late, "") + "," + entry("a", early, ""), `[{"manager":"b","operation":"Update","time":"` + late + `"}]`},
		"the newest is last":    {entry("a", early, "") + "," + entry("b", late, `,"subresource":"status"`), `[{"manager":"b","operation":"Update","subresource":"status","time":"` + late + `"}]`},
		"two are newest":        {entry("a", late, "") + "," + entry("o", early, "") + "," + entry("b", late, ""), `[{"manager":"a","operation":"Update","time":"` + late + `"},{"manager":"b","operation":"Update","time":"` + late + `"}]`},
		"another zone":          {entry("a", "2026-11-21T07:51:38+01:00", "") + "," + entry("b", early, ""), `[{"manager":"a","operation":"Update","time":"2026-11-21T07:51:38+01:00"}]`},
		"nobody":                {``, ``},
		"cleared":               {`{}`, ``},
		"no time":               {entry("a", "", ""), ``},
		"a time that is none":   {entry("a", "yesterday", "") + "," + entry("b", early, ""), `[{"manager":"b","operation":"Update","time":"` + early + `"}]`},
		"no name":               {entry("", late, "") + "," + entry("b", early, ""), `[{"manager":"b","operation":"Update","time":"` + early + `"}]`},
		"a name without an end": {entry(strings.Repeat("n", 5000), late, "") + "," + entry("b", early, ""), `[{"manager":"b","operation":"Update","time":"` + early + `"}]`},
		"what is no entry":      {`7,"x",[],null,` + entry("b", early, ""), `[{"manager":"b","operation":"Update","time":"` + early + `"}]`},
		"values that are none":  {`{"manager":7,"time":[` + late + `]},` + entry("b", early, ""), ``},
		"a name with quotes":    {entry(`a"\é</`, early, ""), `[{"manager":"a\"\\é</","operation":"Update","time":"` + early + `"}]`},
		"too many":              {strings.Join(many, ","), "8"},
	} {
		text := `{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5","managedFields":[` + c.fields + `]}}}` + "\n"
		for _, keep := range []bool{false, true} {
			frames := NewReader(strings.NewReader(text), Options{Actor: true, KeepManagedFields: keep})
			f, err := frames.Next()
			if err != nil || f.Object.Err != nil {
				if json.Valid([]byte(text)) {
					t.Errorf("%s: %v, %v", name, err, f.Object.Err)
				}
				continue
			}
			got := string(f.Object.Actor)
			if c.want == "8" {
				var list []struct{ Manager string }
				if err := json.Unmarshal([]byte(got), &list); err != nil || len(list) != maxActors || list[7].Manager != "m7" {
					t.Errorf("%s: got %s: %v", name, got, err)
				}
			} else if got != c.want {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
			}
			if bytes.Contains(f.Object.JSON, []byte("managedFields")) != keep {
				t.Errorf("%s: the object is %s", name, f.Object.JSON)
			}
		}
	}
}

// TestActorsAreFoundInAnyForm, beside a value with an escape.
func TestActorsAreFoundInAnyForm(t *testing.T) {
	const meta = `"managedFields":[{"manager":"m","operation":"Apply","time":"2026-11-21T06:51:37Z"}],"name":"a"`
	for _, object := range []string{`{"metadata":{` + meta + `}}`, `{ "metadata" : {` + meta + `, "uid" : "\u0061" } }`} {
		frames := NewReader(strings.NewReader(`{"type":"ADDED","object":`+object+"}\n"), Options{Actor: true})
		f, err := frames.Next()
		if err != nil || string(f.Object.Actor) != `[{"manager":"m","operation":"Apply","time":"2026-11-21T06:51:37Z"}]` {
			t.Errorf("%s: %s, %v", object, f.Object.Actor, err)
		}
	}
}
