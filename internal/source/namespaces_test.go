package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"
)

// keptLabels saves labels, and fails as often as it is told to.
type keptLabels struct {
	fails int
	calls []string
}

func (k *keptLabels) save(name string, labels map[string]string) error {
	if k.fails > 0 {
		k.fails--
		return errors.New("the disk is full")
	}
	k.calls = append(k.calls, fmt.Sprintf("save %s %v", name, labels))
	return nil
}

// What labels choose is asked for before the labels are saved: after a crash between the two it is asked for again.
func TestI4ChangedLabelsAreSavedAfterWhatTheyChooseIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &keptLabels{fails: 1}
		n, err := NewNamespaces(t.Context(), NamespacesConfig{
			Rest: &rest.Config{Host: "http://server"}, Saved: map[string]map[string]string{"shop": {"team": "x"}}, Save: store.save, Failed: func(error) {},
			Changed: func(_ context.Context, name string, before, after map[string]string) error {
				store.calls = append(store.calls, fmt.Sprintf("changed %s %v %v", name, before, after))
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		n.told("shop", map[string]string{"team": "x"}) // as it was
		n.told("shop", map[string]string{"team": "y"})
		n.told("new", map[string]string{})
		want := []string{
			"changed shop map[team:x] map[team:y]", "changed shop map[team:x] map[team:y]", "save shop map[team:y]", "save new map[]",
		}
		if !slices.Equal(store.calls, want) {
			t.Errorf("%q\nwant %q", store.calls, want)
		}
	})
}

// Namespaces that are gone keep their labels, but not any number of them (I6).
func TestI6LabelsOfNamespacesThatAreGoneAreBounded(t *testing.T) {
	store := &keptLabels{}
	n, err := NewNamespaces(t.Context(), NamespacesConfig{
		Rest: &rest.Config{Host: "http://server"}, Saved: map[string]map[string]string{}, Save: store.save, Failed: func(error) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxGone + 1 {
		name := fmt.Sprint("ci-", i)
		n.told(name, map[string]string{"team": "x"})
		n.left(name, true)
	}
	if n.Known("ci-0") != nil || n.Known("ci-1") == nil || len(n.labels) != maxGone {
		t.Errorf("%d are known, the first is %v", len(n.labels), n.Known("ci-0"))
	}
	if last := store.calls[len(store.calls)-1]; last != "save ci-0 map[]" {
		t.Errorf("the last that is saved is %q", last)
	}
}

// getter answers with the codes, one after the other, with the last one for ever.
type getter struct {
	codes []int
	asked int
}

func (a *getter) RoundTrip(request *http.Request) (*http.Response, error) {
	code := a.codes[min(a.asked, len(a.codes)-1)]
	a.asked++
	body := `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"ci"}}`
	if code == http.StatusNotFound {
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: request,
	}, nil
}

// A namespace that no list and no event has is asked for, once it is known that it is gone never again. One that goes
// before the watch tells of it holds nothing up.
func TestNamespacesThatAreGoneAreAskedForOnce(t *testing.T) {
	for name, codes := range map[string][]int{"gone": {404}, "going": {200, 404}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &getter{codes: codes}
				n, err := NewNamespaces(t.Context(), NamespacesConfig{
					Rest: &rest.Config{Host: "http://server", Transport: server}, Saved: map[string]map[string]string{}, Save: new(keptLabels).save,
					Failed: func(err error) { t.Error(err) },
				})
				if err != nil {
					t.Fatal(err)
				}
				close(n.listed)
				for range 3 {
					if labels, err := n.Labels("ci"); err != nil || labels == nil || len(labels) > 0 {
						t.Errorf("%v, %v", labels, err)
					}
				}
				if server.asked != len(codes) {
					t.Errorf("the server was asked %d times, want %d", server.asked, len(codes))
				}
			})
		})
	}
}
