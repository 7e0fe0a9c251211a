package checkpoint

import "context"

// Open opens the state in the directory and creates what is missing, unless it is opened read-only. It never resets a
// state: one that is damaged, newer, or in use is refused with a *DamagedError, *NewerError or *InUseError, a full
// volume with a *disk.FullError, and a missing state that is opened read-only with ErrNoState. One of an earlier format
// is converted (convert.go), or refused with an *EarlierError where that cannot be, or where it is opened read-only.
//
// Open gives up when ctx ends; what is still under way then ends by itself, and releases the directory.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	d, err := newDatabase(ctx, dir, opts.withDefaults())
	if err != nil {
		return nil, err
	}
	s := &Store{
		database: d, identity: identity{d}, streams: streams{d}, images: images{d}, pendingSnapshots: pendingSnapshots{d},
		spools: spools{database: d, codec: &codec{}, reclaimed: map[string]*reclaimed{}},
	}
	if err := d.open(ctx, func() error { return inOrder(d.checkFormat, s.convert, s.spools.load, d.record) }); err != nil {
		return nil, err
	}
	return s, nil
}

// record begins to tell the journal. Without one, that the log has all of the state counts no more: what follows may
// change it.
func (d *database) record() error {
	if d.opts.Journal == nil {
		return d.forgetLogged()
	}
	d.recorder = &recorder{to: d.opts.Journal}
	return nil
}
