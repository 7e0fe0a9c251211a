package locks

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// moment is where a goroutine is: at the begin of a block, with these locks and these deferred calls.
type moment struct {
	block    *ssa.BasicBlock
	held     held
	deferred string // their places in body.defers, a byte each, the last one last
}

// body walks through the blocks of one function.
type body struct {
	*walker
	args   [][]*ssa.Function // the functions that it is given, by its parameters, nil where they are not known
	seen   map[moment]bool
	defers []*ssa.Defer
	ends   []held
}

func (b *body) walk(from moment) {
	todo := []moment{from}
	for len(todo) > 0 {
		m := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if b.seen[m] {
			continue
		}
		b.seen[m] = true
		for _, after := range b.through(m, m.block.Instrs) {
			todo = append(todo, b.next(after)...)
		}
	}
}

// through takes the moment through the rest of its block, on each way on which the calls in it can end.
func (b *body) through(m moment, rest []ssa.Instruction) []moment {
	for i, instruction := range rest {
		var ends []held
		switch x := instruction.(type) {
		case *ssa.Call:
			ends = b.call(x, m.held)
		case *ssa.RunDefers:
			ends = b.runDeferred(m)
		case *ssa.Defer:
			m.deferred = b.put(x, m.deferred)
			continue
		case *ssa.Return:
			b.ends = append(b.ends, m.held)
			continue
		default:
			continue
		}
		var all []moment
		for _, end := range ends[1:] {
			other := m
			other.held = end
			all = append(all, b.through(other, rest[i+1:])...)
		}
		if m.held = ends[0]; len(all) > 0 {
			return append(all, b.through(m, rest[i+1:])...)
		}
	}
	return []moment{m}
}

// put adds a deferred call. One in a loop is there once.
func (b *body) put(x *ssa.Defer, deferred string) string {
	i := slices.Index(b.defers, x)
	if i < 0 {
		i = len(b.defers)
		b.defers = append(b.defers, x)
	}
	if slices.Contains([]byte(deferred), byte(i)) {
		return deferred
	}
	return string(append([]byte(deferred), byte(i)))
}

// runDeferred returns with which locks the deferred calls can end.
func (b *body) runDeferred(m moment) []held {
	ends := []held{m.held}
	for i := len(m.deferred) - 1; i >= 0; i-- {
		var after []held
		for _, with := range ends {
			after = append(after, b.call(b.defers[m.deferred[i]], with)...)
		}
		slices.Sort(after)
		ends = slices.Compact(after)
	}
	return ends
}

// next is where it goes on. A lock that was tried is held on one of two ways.
func (b *body) next(m moment) []moment {
	var all []moment
	for i, block := range m.block.Succs {
		to := m
		to.block = block
		if lock, on := tried(m.block); lock != nil && on == i {
			to.held = b.take(m.held, lockOf(lock.Call.Args[0]), lock)
		}
		all = append(all, to)
	}
	return all
}

// tried is the call at the end of the block that decides by whether it got a lock, and the branch on which it did.
func tried(block *ssa.BasicBlock) (call *ssa.Call, branch int) {
	last, ok := block.Instrs[len(block.Instrs)-1].(*ssa.If)
	if !ok {
		return nil, 0
	}
	condition := last.Cond
	if not, ok := condition.(*ssa.UnOp); ok && not.Op == token.NOT {
		condition, branch = not.X, 1
	}
	call, ok = condition.(*ssa.Call)
	if !ok || call.Call.StaticCallee() == nil {
		return nil, 0
	}
	if _, tries := effect(call.Call.StaticCallee()); !tries {
		return nil, 0
	}
	return call, branch
}

// call returns with which locks the call can end.
func (b *body) call(site ssa.CallInstruction, with held) []held {
	common := site.Common()
	if f := common.StaticCallee(); f != nil {
		if taken, tries := effect(f); taken > 0 && !tries {
			return []held{b.take(with, lockOf(common.Args[0]), site)}
		} else if taken < 0 {
			return []held{with.without(lockOf(common.Args[0]))}
		}
	}
	var ends []held
	for _, f := range b.calleesOf(site) {
		args := b.known(common, len(f.Params))
		switch {
		case len(f.Blocks) > 0:
			ends = append(ends, b.enter(f, with, args)...)
		case !later(f):
			b.callBack(args, with)
		}
	}
	if len(ends) == 0 {
		return []held{with}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}

func (b *body) calleesOf(site ssa.CallInstruction) []*ssa.Function {
	if known := b.functions(site.Common().Value); len(known) > 0 && !site.Common().IsInvoke() {
		return known
	}
	return b.callees[site]
}

// callBack enters the functions that a foreign function is given: it calls them before it returns.
func (b *body) callBack(args [][]*ssa.Function, with held) {
	for _, f := range slices.Concat(args...) {
		if len(f.Blocks) > 0 {
			b.enter(f, with, nil)
		}
	}
}

// known are the functions among the arguments of a call, in the places of the callee's parameters: a method that is
// called by an interface has its receiver in front.
func (b *body) known(common *ssa.CallCommon, params int) [][]*ssa.Function {
	all := make([][]*ssa.Function, max(0, params-len(common.Args)), params)
	for _, arg := range common.Args {
		all = append(all, b.functions(arg))
	}
	return all
}

// functions are those that the value is or, if it is a list of them, has. It is nil where that is not known.
func (b *body) functions(v ssa.Value) []*ssa.Function {
	switch v := v.(type) {
	case *ssa.Function:
		return []*ssa.Function{v}
	case *ssa.MakeClosure:
		return []*ssa.Function{v.Fn.(*ssa.Function)}
	case *ssa.ChangeType:
		return b.functions(v.X)
	case *ssa.Slice:
		return b.elements(v.X)
	case *ssa.UnOp: // an element
		if at, ok := v.X.(*ssa.IndexAddr); ok {
			return b.functions(at.X)
		}
	case *ssa.Parameter:
		if i := slices.Index(v.Parent().Params, v); i >= 0 && i < len(b.args) {
			return b.args[i]
		}
	}
	return nil
}

// elements are the functions that are put into an array: the arguments of a function that takes any number of them.
func (b *body) elements(array ssa.Value) (all []*ssa.Function) {
	if _, ok := array.(*ssa.Alloc); !ok {
		return nil
	}
	for _, use := range *array.Referrers() {
		at, ok := use.(*ssa.IndexAddr)
		if !ok {
			continue
		}
		for _, put := range *at.Referrers() {
			if store, ok := put.(*ssa.Store); ok && store.Addr == at {
				all = append(all, b.functions(store.Val)...)
			}
		}
	}
	return all
}
