package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// message is a CloudEvent as exporter writes it, at a quarter past three local time.
func message(op, attributes, data string) []byte {
	at := time.Date(2026, 11, 21, 15, 15, 0, 123e6, time.Local).Format(time.RFC3339Nano)
	return fmt.Appendf(nil, `{"specversion":"1.0","type":"dev.kubecdc.%s","time":%q,%s,"data":%s}`, op, at, attributes, data)
}

const (
	web  = `"group":"apps","resource":"deployments","namespace":"shop","name":"web","uid":"u1"`
	node = `"resource":"nodes","name":"n1","uid":"u2"`
)

// TestPresenterShowsALifeInLines is what a person sees of two objects in exporter dev.
func TestPresenterShowsALifeInLines(t *testing.T) {
	p := NewPresenter()
	for i, c := range []struct {
		message []byte
		want    string
	}{
		{message("snapshot.begin", `"group":"apps","resource":"deployments","reason":"initial"`, `{"resourceVersion":"7","reason":"initial"}`),
			"15:15:00.123  snapshot.begin  deployments.apps                                                initial, at version 7"},
		{message("replaced", web, `{"metadata":{"resourceVersion":"5"},"spec":{"replicas":1}}`),
			"15:15:00.123  replaced        deployments.apps        shop/web"},
		{message("updated", web, `{"metadata":{"resourceVersion":"8","generation":2},"spec":{"replicas":3}}`),
			"15:15:00.123  updated         deployments.apps        shop/web                                spec.replicas: 1 -> 3"},
		{message("updated", web, `{"metadata":{"resourceVersion":"9","generation":2},"spec":{"replicas":3}}`),
			"15:15:00.123  updated         deployments.apps        shop/web"},
		{message("deleted", web, `{"metadata":{"resourceVersion":"10"}}`),
			"15:15:00.123  deleted         deployments.apps        shop/web"},
		{message("added", web, `{"spec":{"replicas":4}}`),
			"15:15:00.123  added           deployments.apps        shop/web"},
		{message("added", node, `{}`),
			"15:15:00.123  added           nodes                   n1"},
		{message("gap", `"resource":"pods","reason":"gone"`, `{"reason":"gone","lastDelivered":"7","resourceVersion":"90"}`),
			"15:15:00.123  gap             pods                                                            gone, between versions 7 and 90"},
		{message("snapshot.end", `"resource":"pods","reason":"gone"`, `{"replaced":1,"deleted":2,"synced":0}`),
			"15:15:00.123  snapshot.end    pods                                                            gone: 1 replaced, 2 deleted, 0 synced"},
	} {
		got, err := p.Line(c.message)
		if err != nil {
			t.Fatal(err)
		}
		if got != c.want {
			t.Errorf("message %d\ngot  %q\nwant %q", i, got, c.want)
		}
	}
}

// TestPresenterForgetsDeletedObjects: it runs for days.
func TestPresenterForgetsDeletedObjects(t *testing.T) {
	p := NewPresenter()
	for _, m := range [][]byte{
		message("added", web, `{"a":1}`),
		message("deleted", web, `{"a":1}`),
		message("deleted", node+`,"finalstateunknown":true`, `null`),
	} {
		if _, err := p.Line(m); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.last) != 0 {
		t.Errorf("remembers %v", p.last)
	}
}

func TestPresenterNamesWhatIsNoEvent(t *testing.T) {
	_, err := NewPresenter().Line([]byte("hello"))
	if want := "read an event: invalid character 'h' looking for beginning of value"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDifferencesNamePaths(t *testing.T) {
	object := func(text string) any { return map[string]any{"a": map[string]any{"b": text, "list": []any{1.0, text}}} }
	for _, c := range []struct {
		name          string
		before, after any
		want          []string
	}{
		{"the same", object("x"), object("x"), nil},
		{"in depth and in a list", object("x"), object("y"), []string{`a.b: "x" -> "y"`, `a.list: [1,"x"] -> [1,"y"]`}},
		{"added key", map[string]any{}, map[string]any{"k": true}, []string{"k: none -> true"}},
		{"removed object", map[string]any{"k": map[string]any{"v": 1.0}}, map[string]any{}, []string{`k: {"v":1} -> none`}},
		{"long value", map[string]any{"k": strings.Repeat("ä", 30)}, map[string]any{"k": nil}, []string{`k: "` + strings.Repeat("ä", 22) + `… -> none`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := differences("", c.before, c.after); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestShortenLeavesOutWhatAlwaysChanges(t *testing.T) {
	all := []string{"metadata.resourceVersion: 1 -> 2", "metadata.generation: 1 -> 2", "a", "status.observedGeneration: 1 -> 2", "b", "c", "d", "e"}
	if got, want := shorten(all), []string{"a", "b", "c", "and 2 more"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
