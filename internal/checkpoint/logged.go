package checkpoint

// TakeLogged returns the place in a log of the state that had all of the state when it was closed, and forgets it: what
// is written next may not be there. It is nil where the log may lack something. It notes the claim of the log with
// which the state is led from now on.
func (d *database) TakeLogged(claim []byte) ([]byte, error) {
	place, _, err := d.get(loggedKey())
	if err != nil {
		return nil, err
	}
	return place, d.write(func(b *rows) error {
		b.remove(loggedKey())
		b.set(claimedKey(), claim)
		return nil
	})
}

// forgetLogged forgets the place in a log of the state that has all of it.
func (d *database) forgetLogged() error {
	_, found, err := d.get(loggedKey())
	if err != nil || !found || d.opts.ReadOnly {
		return err
	}
	return d.write(func(b *rows) error {
		b.remove(loggedKey())
		return nil
	})
}

// SetLogged notes that the log of the state has all of it at the place.
func (d *database) SetLogged(place []byte) error { return d.set(loggedKey(), place) }
