package checkpoint

// MaxRecords is the most records that one save should hold, of whose objects nothing is kept: a larger one costs many
// times as much, because Pebble makes it into a table of its own.
const MaxRecords = 3000

// Batch is what was asked for: one Commit saves all of it.
type Batch struct {
	// PendingSnapshots are snapshots that are owed from now on: one that is owed already is owed anew, from its
	// beginning, in a newer Generation.
	PendingSnapshots []PendingSnapshot
	// Steered are pending snapshots, each in the Generation that is meant, with which Steering is done.
	Steered  []PendingSnapshot
	Steering Steering
	// Heard is by the name of the sink what was heard through its broker, together with what was asked for there: texts
	// that only package signal reads. An empty one forgets it.
	Heard map[string][]byte
}

// Commit saves the batch whole or not at all, and returns when it is durable (I5).
func (s *Store) Commit(b Batch) error {
	return s.write(func(r *rows) error {
		for _, pending := range b.PendingSnapshots {
			if err := s.owe(r, &pending); err != nil {
				return err
			}
		}
		for _, pending := range b.Steered {
			if err := s.steer(r, b.Steering, &pending); err != nil {
				return err
			}
		}
		for name, heard := range b.Heard {
			if len(heard) == 0 {
				r.remove(heardKey(name))
				continue
			}
			r.set(heardKey(name), heard)
		}
		return nil
	})
}

// Heard is what was heard through the sink's broker, nil where nothing was.
func (s *Store) Heard(sinkName string) ([]byte, error) {
	value, _, err := s.get(heardKey(sinkName))
	return value, err
}

// Hearing are the sinks through whose brokers something was heard, sorted.
func (s *Store) Hearing() (sinks []string, err error) {
	err = s.each([]byte{tableHeard}, func(key, _ []byte) error {
		sinks = append(sinks, string(key[1:]))
		return nil
	})
	return sinks, err
}

func heardKey(sinkName string) []byte { return append([]byte{tableHeard}, sinkName...) }
