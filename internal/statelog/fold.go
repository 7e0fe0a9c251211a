package statelog

import "github.com/kubecdc/kubecdc/internal/checkpoint"

// fold applies the units of a range, in their order. It keeps one unit in memory.
type fold struct {
	of       Range
	next     uint64
	number   int
	contents []byte
	apply    func(checkpoint.Changes) error
}

func newFold(of Range, apply func(checkpoint.Changes) error) *fold {
	return &fold{of: of, next: of.from, apply: apply}
}

// add takes the next message of the log.
func (f *fold) add(p *part) error {
	if !f.of.has(p) || p.unit != f.next {
		return nil
	}
	switch p.number {
	case 0:
		f.contents, f.number = f.contents[:0], 0
	case f.number:
	default:
		f.number = 0 // what is left of a torn one, which begins again
		return nil
	}
	f.contents = append(f.contents, p.contents...)
	if f.number++; f.number < p.parts {
		return nil
	}
	changes, err := join(f.contents)
	if err == nil {
		err = f.apply(changes)
	}
	f.next, f.number = f.next+1, 0
	return err
}

// isWhole says whether all of the range was there. A writer may have taken a part away meanwhile.
func (f *fold) isWhole() bool { return f.next == f.of.to+1 }
