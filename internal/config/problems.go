package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Problem is one thing that is wrong.
type Problem struct {
	Path string // in the file, "sinks[1].nats.stream", or a flag, "--sink nats://h"; "" is the file as a whole
	Line int    // in the file; 0 where it is not known
	Text string // what is wrong, and what would be right
}

// String is the problem on one line.
func (p Problem) String() string {
	switch {
	case p.Path == "" && p.Line == 0:
		return p.Text
	case p.Path == "":
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	case p.Line == 0:
		return p.Path + ": " + p.Text
	}
	return fmt.Sprintf("%s (line %d): %s", p.Path, p.Line, p.Text)
}

// Problems is the error that names everything wrong at once. It means that a person has to change the file or the
// command line, and that trying again is no use.
type Problems struct {
	Source string    // "configuration config.yaml", "command line"
	List   []Problem // never empty in an error; in the file's order
}

// Error is one line for one problem, and a heading with a line each for more.
func (p *Problems) Error() string {
	if len(p.List) == 1 {
		return p.Source + ": " + p.List[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d problems:", p.Source, len(p.List))
	for _, problem := range p.List {
		b.WriteString("\n  " + problem.String())
	}
	return b.String()
}

func (p *Problems) add(problem Problem) { p.List = append(p.List, problem) }

// err is the error of a finished search: nil where nothing was found.
func (p *Problems) err() error {
	if len(p.List) == 0 {
		return nil
	}
	slices.SortStableFunc(p.List, func(a, b Problem) int { return cmp.Compare(a.order(), b.order()) })
	return p
}

// order puts problems of unknown line, which are mostly about something missing, last.
func (p Problem) order() int {
	if p.Line == 0 {
		return math.MaxInt
	}
	return p.Line
}
