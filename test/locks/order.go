package locks

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// order is which locks may be taken under which.
type order struct {
	levels map[string]int  // by name, as the document has it
	leaves map[string]bool // nothing is taken under these
}

// parse reads the order from the section "Locks" of a document: a table whose rows begin with a level and the names of
// locks, and a paragraph about leaves.
func parse(document string) (*order, error) {
	_, section, found := strings.Cut(document, "\n## Locks\n")
	if !found {
		return nil, fmt.Errorf("read the order of locks: the document has no section Locks")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	o := &order{levels: map[string]int{}, leaves: map[string]bool{}}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]*)\|`).FindAllStringSubmatch(section, -1) {
		level, _ := strconv.Atoi(row[1]) // it is digits
		for _, lock := range names(row[2]) {
			o.levels[lock] = level
		}
	}
	_, leaves, _ := strings.Cut(section, "\nThese locks are leaves")
	leaves, _, _ = strings.Cut(leaves, "\n\n")
	for _, lock := range names(leaves) {
		o.leaves[lock] = true
	}
	if len(o.levels) == 0 || len(o.leaves) == 0 {
		return nil, fmt.Errorf("read the order of locks: %d locks have a level, and %d are leaves: keep the table, and the paragraph that begins with \"These locks are leaves\"",
			len(o.levels), len(o.leaves))
	}
	return o, nil
}

// names are the locks in a text: what stands in backticks and has a type and a field.
func names(text string) []string {
	var all []string
	for _, match := range regexp.MustCompile("`([a-zA-Z]+\\.[a-zA-Z.]+)`").FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

// level is that of a lock, whose name has its package in front. A variable of a function has none.
func (o *order) level(lock string) (level int, known bool) {
	for name, level := range o.levels {
		if lock == name || strings.HasSuffix(lock, "."+name) {
			return level, true
		}
	}
	return 0, false
}

func (o *order) leaf(lock string) bool {
	for name := range o.leaves {
		if lock == name || strings.HasSuffix(lock, "."+name) {
			return true
		}
	}
	_, known := o.level(lock)
	return !known
}

// objection is why the lock may not be taken while the other is held, "" where it may.
func (o *order) objection(other, lock string) string {
	if other == lock {
		return "it is the same one, or another of its kind"
	}
	if o.leaf(other) {
		return "nothing may be taken under that"
	}
	if o.leaf(lock) {
		return ""
	}
	above, _ := o.level(other)
	below, _ := o.level(lock)
	if below <= above {
		return fmt.Sprintf("the levels are %d and %d", below, above)
	}
	return ""
}
