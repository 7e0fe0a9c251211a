package checkpoint

import (
	"slices"
	"strconv"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestSelectIsAFilteredScan compares each filter with the whole scan, filtered by hand.
func TestSelectIsAFilteredScan(t *testing.T) {
	s := open(t, t.TempDir())
	var batch Batch
	for i, key := range oddKeys() {
		uid := strconv.Itoa(i % 700) // text, each of several objects
		if i%2 == 0 {
			uid = "6ba7b810-9dad-11d1-80b4-00c04fd4" + strconv.Itoa(1000+i)
		}
		if i == 4 {
			uid = "016b0000-0000-0000-0000-000000000000" // begins as the text k is kept: its length, and the letter
		}
		rec := object(change.Added, "", uid, strconv.Itoa(i))
		rec.Key = key
		batch.Records = append(batch.Records, rec)
	}
	must(t, s.Commit(batch))
	all := scan(t, s, "pods")
	for _, namespace := range []string{"", "a", "a-", "b", "ä", "none", "a/b"} {
		for _, uid := range []string{"", "7", "70", "k", "6ba7b810-9dad-11d1-80b4-00c04fd41042", "6ba7b810-9dad-11d1-80b4-00c04fd49999", "6BA7B810-9DAD-11D1-80B4-00C04FD41042"} {
			filter := Filter{Namespace: namespace, UID: uid}
			want := slices.DeleteFunc(slices.Clone(all), func(e change.Entry) bool {
				return namespace != "" && e.Key.Namespace != namespace || uid != "" && e.UID != uid
			})
			if got := collect(t, s, filter); !slices.Equal(got, want) {
				t.Errorf("%+v selects %d objects, want %d", filter, len(got), len(want))
			}
		}
	}
}

func collect(t *testing.T, s *Store, filter Filter) []change.Entry {
	t.Helper()
	all := []change.Entry{}
	for entry, err := range s.inventory.Select("pods", filter) {
		must(t, err)
		all = append(all, entry)
	}
	return all
}

// TestSelectOfANamespaceReadsNothingElse: a damaged value of another namespace is not come across.
func TestSelectOfANamespaceReadsNothingElse(t *testing.T) {
	s := open(t, t.TempDir())
	for _, namespace := range []string{"a", "b", "b-", "c"} {
		rec := object(change.Added, "web", "u", "1")
		rec.Key.Namespace = namespace
		must(t, s.Commit(Batch{Records: []*change.Record{rec}}))
		if namespace != "b" {
			must(t, s.db.Set(appendKey(inventoryPrefix("pods"), rec.Key), []byte{0xff}, nil))
		}
	}
	if got := collect(t, s, Filter{Namespace: "b"}); len(got) != 1 {
		t.Errorf("got %+v, want one object", got)
	}
}
