package locks

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// held are the names of the locks that a goroutine holds, sorted and joined by spaces.
type held string

func (h held) locks() []string { return strings.Fields(string(h)) }

func (h held) with(lock string) held {
	all := h.locks()
	if slices.Contains(all, lock) {
		return h
	}
	all = append(all, lock)
	slices.Sort(all)
	return held(strings.Join(all, " "))
}

func (h held) without(lock string) held {
	all := h.locks()
	if i := slices.Index(all, lock); i >= 0 {
		all = slices.Delete(all, i, i+1)
	}
	return held(strings.Join(all, " "))
}

// visit is a function that is entered with locks held. What is known of the functions that it is given is part of it: a
// function that calls back is another one for each caller.
type visit struct {
	function *ssa.Function
	held     held
	given    string
}

// findings are what a walk has seen.
type findings struct {
	violations []string        // each with the calls that lead to it
	pairs      map[string]bool // "b under a", in order or not
}

// walker follows calls with the locks that are held at each.
type walker struct {
	*program
	order    *order
	exits    map[visit][]held  // with which locks a visit can end
	way      []string          // the calls that led here
	problems map[string]string // and one way to each
	pairs    map[string]bool
}

// follow walks through all functions, each as one that is called with no lock held.
func follow(p *program, o *order) *findings {
	w := &walker{program: p, order: o, exits: map[visit][]held{}, problems: map[string]string{}, pairs: map[string]bool{}}
	for _, f := range p.functions {
		w.enter(f, "", nil)
	}
	found := &findings{pairs: w.pairs}
	for problem, way := range w.problems {
		found.violations = append(found.violations, problem+way)
	}
	slices.Sort(found.violations)
	return found
}

// enter walks through the function and returns with which locks it can end. args are what it is given, as far as they
// are known functions.
func (w *walker) enter(f *ssa.Function, with held, args [][]*ssa.Function) []held {
	at := visit{f, with, fmt.Sprint(args)}
	if exits, known := w.exits[at]; known {
		return exits
	}
	w.exits[at] = []held{with} // for a call of itself
	w.way = append(w.way, f.String())
	defer func() { w.way = w.way[:len(w.way)-1] }()
	b := &body{walker: w, args: args, seen: map[moment]bool{}}
	b.walk(moment{block: f.Blocks[0], held: with})
	slices.Sort(b.ends)
	w.exits[at] = slices.Compact(b.ends)
	return w.exits[at]
}

// take notes a lock that is taken, and whether it may be.
func (w *walker) take(with held, lock string, where ssa.Instruction) held {
	for _, other := range with.locks() {
		w.pairs[lock+" under "+other] = true
		reason := w.order.objection(other, lock)
		if reason == "" {
			continue
		}
		place := where.Parent().Prog.Fset.Position(where.Pos())
		problem := fmt.Sprintf("%s:%d: %s is taken while %s is held: %s", place.Filename, place.Line, lock, other, reason)
		way := "\n\tby way of " + strings.Join(w.way, "\n\t-> ")
		if known, ok := w.problems[problem]; !ok || len(way) < len(known) || len(way) == len(known) && way < known {
			w.problems[problem] = way
		}
	}
	return with.with(lock)
}

// later says whether a foreign function only keeps what it is given, and calls it from another goroutine.
func later(f *ssa.Function) bool {
	return slices.Contains([]string{
		"(*sync.WaitGroup).Go", "(*golang.org/x/sync/errgroup.Group).Go", "context.AfterFunc", "time.AfterFunc", "runtime.AddCleanup",
	}, strings.SplitN(f.String(), "[", 2)[0])
}
