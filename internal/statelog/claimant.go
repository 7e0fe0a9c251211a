package statelog

// Claimant is who says that he writes from here on. What is "" is not known.
type Claimant struct {
	Member string // his state directory's id
	Sinks  string // what he writes to, in words of his own
	Lease  string // that says who leads, namespace/name
}

// contents are those of a claim.
func (c *Claimant) contents() []byte {
	return appendText(appendText(appendText(nil, c.Member), c.Sinks), c.Lease)
}

// claimantOf is the inverse of contents. A claim of an earlier version has no Lease, or names nobody.
func claimantOf(contents []byte) Claimant {
	r := reader{rest: contents}
	c := Claimant{Member: r.text(), Sinks: r.text()}
	if r.bad {
		return Claimant{}
	}
	if c.Lease = r.text(); r.bad {
		c.Lease = ""
	}
	return c
}
