package source

import "context"

// permit is a stream's place inside the gate. One goroutine at a time uses it.
type permit struct {
	gate  *Gate
	leave func() // nil outside
}

// enter waits until the stream may begin, where it is not inside.
func (p *permit) enter(ctx context.Context, as precedence) (err error) {
	if p.leave == nil {
		p.leave, err = p.gate.enter(ctx, as)
	}
	return err
}

// giveBack lets another one in.
func (p *permit) giveBack() {
	if p.leave != nil {
		p.leave()
		p.leave = nil
	}
}
