package source

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// inventoryOf is an Inventory over joined keys.
type inventoryOf []string

func (v inventoryOf) Ended(string, string, string) (bool, error) { return false, nil }

func (v inventoryOf) Lookup(_ string, key change.Key) (change.Entry, bool, error) {
	return change.Entry{Key: key}, slices.Contains(v, key.String()), nil
}

func (v inventoryOf) Scan(string, string) iter.Seq2[change.Entry, error] {
	sorted := slices.Sorted(slices.Values(v))
	return func(yield func(change.Entry, error) bool) {
		for _, joined := range sorted {
			if !yield(change.Entry{Key: change.ParseKey(joined)}, nil) {
				return
			}
		}
	}
}

// mergeAll lists the keys and returns those found in the inventory and those that are gone.
func mergeAll(m *merge, listed []string) (found, gone []string, err error) {
	defer m.close()
	passed := func(entry change.Entry) error { gone = append(gone, entry.Key.String()); return nil }
	for _, joined := range listed {
		_, there, err := m.find(change.ParseKey(joined), passed)
		if err != nil {
			return nil, nil, err
		}
		if there {
			found = append(found, joined)
		}
	}
	for entry, err := range m.rest() {
		if err != nil {
			return nil, nil, err
		}
		passed(entry)
	}
	return found, gone, nil
}

func TestMergeFollowsTheJoinedKeysOrder(t *testing.T) {
	// '-' and '.' sort below '/': the order of the joined strings is not that of (namespace, name).
	listed := []string{"a-b/x", "a/x", "a/y", "té"}
	found, gone, err := mergeAll(newMerge(inventoryOf{"a-b/x", "a-c/gone", "a/y", "zz/gone"}, "pods", false), listed)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(found, gone); got != "[a-b/x a/y] [a-c/gone zz/gone]" {
		t.Errorf("found and gone are %s", got)
	}
}

// The oracle is two set operations.
func TestI4MergeFindsExactlyTheDifference(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		listed, inventory := randomKeys(rng), randomKeys(rng)
		var both, onlyInventory []string
		for _, key := range inventory {
			if slices.Contains(listed, key) {
				both = append(both, key)
			} else {
				onlyInventory = append(onlyInventory, key)
			}
		}
		for _, unsorted := range []bool{false, true} {
			given := slices.Clone(listed)
			if unsorted {
				rng.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
			}
			found, gone, err := mergeAll(newMerge(inventoryOf(inventory), "pods", unsorted), given)
			slices.Sort(found)
			if err != nil || !slices.Equal(found, both) || !slices.Equal(gone, onlyInventory) {
				t.Fatalf("unsorted=%t listed %q inventory %q: found %q gone %q, %v", unsorted, given, inventory, found, gone, err)
			}
		}
	}
}

func randomKeys(rng *rand.Rand) []string {
	set := map[string]bool{}
	for range rng.IntN(8) {
		set[strings.Repeat("a", 1+rng.IntN(2))+[]string{"-", ".", "/"}[rng.IntN(3)]+string(rune('a'+rng.IntN(3)))] = true
	}
	var keys []string
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func TestI4UnsortedListIsNoticed(t *testing.T) {
	_, _, err := mergeAll(newMerge(inventoryOf{"a/a"}, "pods", false), []string{"b/b", "a/a"})
	if !errors.Is(err, errUnsorted) {
		t.Errorf("error is %v, want errUnsorted", err)
	}
}
