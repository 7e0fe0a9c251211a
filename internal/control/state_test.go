package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

func open(t *testing.T, dir string) *checkpoint.Store {
	t.Helper()
	store, err := checkpoint.Open(context.Background(), dir, checkpoint.Options{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put saves objects of sink out, each given as stream, namespace, name and uid.
func put(t *testing.T, store *checkpoint.Store, objects [][4]string) {
	t.Helper()
	saved, err := store.LoadSink("out")
	must(t, err)
	for i, o := range objects {
		namespace, _, found := strings.Cut(o[0], "/")
		if !found {
			namespace = ""
		}
		stream := change.Stream{Resource: change.Resource{Name: resourceOf(o[0])}, Namespace: namespace}
		must(t, store.KnowStreams([]change.Stream{stream}))
		scope, at := checkpoint.ScopeOf(&stream), checkpoint.Point{History: 1, Version: fmt.Sprint(i + 1)}
		selector := ""
		if saved.Places[resourceOf(o[0])] == nil || saved.Places[resourceOf(o[0])][string(scope)].At.History == 0 {
			must(t, saved.Acked(&checkpoint.Item{
				Kind: checkpoint.Begin, Resource: resourceOf(o[0]), Scope: scope, At: at, Selection: &selector,
				Comparison: checkpoint.Comparison{ID: "1.1", Over: true, Namespace: string(scope)},
			}))
		}
		must(t, saved.Acked(&checkpoint.Item{
			Kind: checkpoint.Told, Resource: resourceOf(o[0]), Scope: scope, At: at, Given: at,
			Key: change.Key{Namespace: o[1], Name: o[2]}, UID: o[3],
		}))
	}
	saved.Mark = "12"
	must(t, store.SaveSinks([]*checkpoint.SinkState{saved}, checkpoint.Spools{}, nil))
}

// TestFindIsWhatIsAskedFor compares every query with all objects, filtered by hand.
func TestFindIsWhatIsAskedFor(t *testing.T) {
	store := open(t, t.TempDir())
	put(t, store, [][4]string{
		{"nodes", "", "n1", "u1"}, {"pods", "a", "web", "u2"}, {"pods", "a-b", "web", "u3"}, {"pods", "b", "db", "u4"},
		{"a/secrets", "a", "web", "u5"}, {"b/secrets", "b", "key", "u6"}, {"a/secrets", "a", "key", "u2"},
	})
	streams := []string{"a/secrets", "b/secrets", "nodes", "pods"}
	all := find(t, store, streams, Query{})
	if len(all) != 7 {
		t.Fatalf("%d objects: %+v", len(all), all)
	}
	for _, namespace := range []string{"", "a", "a-b", "b", "c"} {
		for _, name := range []string{"", "web", "db", "key", "n1"} {
			for _, uid := range []string{"", "u1", "u2", "u6", "u9"} {
				q := Query{Namespace: namespace, Name: name, UID: uid}
				want := slices.DeleteFunc(slices.Clone(all), func(o Object) bool {
					return namespace != "" && o.Namespace != namespace || name != "" && o.Name != name || uid != "" && o.UID != uid
				})
				if got := find(t, store, streams, q); !reflect.DeepEqual(got, want) {
					t.Errorf("%+v finds %+v, want %+v", q, got, want)
				}
			}
		}
	}
}

func find(t *testing.T, store *checkpoint.Store, streams []string, q Query) []Object {
	t.Helper()
	found := []Object{}
	for object, err := range Find(store, []string{"out"}, streams, q) {
		must(t, err)
		found = append(found, object)
	}
	return found
}

func TestStateIsReadWhole(t *testing.T) {
	store := open(t, t.TempDir())
	must(t, store.SetCluster(checkpoint.Cluster{Name: "dev", UID: "c"}))
	put(t, store, [][4]string{{"pods", "a", "web", "u1"}, {"pods", "b", "web", "u2"}, {"nodes", "", "n", "u3"}})
	want := &State{
		Cluster: "dev", ClusterUID: "c", Clusters: []string{"c"}, Marks: map[string]string{"out": "12"}, Configurations: map[string]json.RawMessage{},
		Streams: map[string]StreamState{
			"pods": {"2", map[string]SinkState{"out": {"2", "", 2, ""}}}, "nodes": {"3", map[string]SinkState{"out": {"3", "", 1, ""}}},
		},
	}
	if got, err := ReadState(store, true); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// TestI10OnlyTheOwnerIsFound: an address that another life of the exporter left is nobody's.
func TestI10OnlyTheOwnerIsFound(t *testing.T) {
	dir := t.TempDir()
	listening := &net.TCPAddr{IP: net.IPv6unspecified, Port: 8080}
	var stopped *NotRunningError
	if client, err := Locate(dir); !errors.As(err, &stopped) {
		t.Errorf("found %+v, %v in an empty directory", client, err)
	}
	store := open(t, dir)
	if client, err := Locate(dir); err == nil || errors.As(err, &stopped) {
		t.Errorf("found %+v, %v before it listens", client, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, addressName), []byte("127.0.0.1:1 1\n"), 0o600))
	if client, err := Locate(dir); err == nil {
		t.Errorf("found %s, which another process left", client.base)
	}
	must(t, os.WriteFile(filepath.Join(dir, addressName+".new"), nil, 0o644)) // of a start that was killed
	withdraw, err := Announce(dir, listening.String(), token)
	must(t, err)
	if client, err := Locate(dir); err != nil || client.base != "http://127.0.0.1:8080" || client.token != token {
		t.Errorf("found %+v, %v", client, err)
	}
	_, err = Announce(dir, "0.0.0.0:8080/clusters/a", token)
	must(t, err)
	if client, err := Locate(dir); err != nil || client.base != "http://127.0.0.1:8080/clusters/a" {
		t.Errorf("found %+v, %v below a path", client, err)
	}
	if info, err := os.Stat(filepath.Join(dir, addressName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the token: %v, %v", info.Mode(), err)
	}
	must(t, store.Close())
	if client, err := Locate(dir); !errors.As(err, &stopped) {
		t.Errorf("found %+v, %v after a kill", client, err)
	}
	must(t, withdraw())
	must(t, withdraw())
	if left, err := filepath.Glob(filepath.Join(dir, addressName+"*")); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}
