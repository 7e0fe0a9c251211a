package deadletter

import (
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Query says which letters of a directory with one of each sink in it are meant.
type Query struct {
	Dir  string
	Sink string   // "" is all
	IDs  []string // none is all
}

// Heads yields the letters without value and object, those of each sink from the oldest on.
func (q *Query) Heads() iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		for letter, err := range q.all() {
			if !yield(letter.Letter, err) {
				return
			}
		}
	}
}

// Whole yields the letters as Heads does, with all that is in their files. One that is sent again meanwhile is left
// out.
func (q *Query) Whole() iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		for head, err := range q.all() {
			letter := head.Letter
			if err == nil {
				letter, err = head.dir.Get(head.ID)
			}
			if !errors.Is(err, errNoLetter) && !yield(letter, err) {
				return
			}
		}
	}
}

// found is a letter's head, and where it is.
type found struct {
	*Letter
	dir *Dir
}

func (q *Query) all() iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		sinks, err := Sinks(q.Dir)
		if err != nil {
			yield(found{}, err)
			return
		}
		for _, name := range sinks {
			if q.Sink != "" && q.Sink != name {
				continue
			}
			dir := New(Options{Dir: filepath.Join(q.Dir, name), Sink: name})
			for letter, err := range dir.All() {
				if err == nil && len(q.IDs) > 0 && !slices.Contains(q.IDs, letter.ID) {
					continue
				}
				if !yield(found{letter, dir}, err) {
					return
				}
			}
		}
	}
}

// DirOf is where the dead letters of all sinks are, unless the configuration says otherwise.
func DirOf(stateDir string) string { return filepath.Join(stateDir, "deadletters") }

// Quoted lists ids for a message.
func Quoted(ids []string) string {
	all := make([]string, len(ids))
	for i, name := range ids {
		all[i] = strconv.Quote(name)
	}
	return strings.Join(all, ", ")
}
