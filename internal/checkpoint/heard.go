package checkpoint

// heard is what was heard through each sink's broker of those who ask there, as texts that only package signal reads.
type heard struct{ *database }

// Heard is what was heard through the sink's broker, nil where nothing was.
func (h heard) Heard(sinkName string) ([]byte, error) {
	value, _, err := h.get(heardKey(sinkName))
	return value, err
}

// Hearing are the sinks through whose brokers something was heard, sorted.
func (h heard) Hearing() (sinks []string, err error) {
	err = h.each([]byte{tableHeard}, func(key, _ []byte) error {
		sinks = append(sinks, string(key[1:]))
		return nil
	})
	return sinks, err
}

func heardKey(sinkName string) []byte { return append([]byte{tableHeard}, sinkName...) }
