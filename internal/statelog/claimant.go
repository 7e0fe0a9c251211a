package statelog

// Claimant is who says that he writes from here on. What is "" is not known.
type Claimant struct {
	Member string // his state directory's id
	Sinks  string // what he writes to, in words of his own
	Lease  string // that says who leads, namespace/name
}

// said is what a claim says.
type said struct {
	Claimant
	earlier []chain // the member's claims before this one, newest first, with none of another member between them
}

// maxEarlier is how many earlier claims a claim names.
const maxEarlier = 32

// after is the claim of who claims after this one, which had the chain.
func (s *said) after(by chain, who Claimant) said {
	if who.Member != s.Member || by == (chain{}) {
		return said{Claimant: who}
	}
	earlier := append([]chain{by}, s.earlier...)
	return said{who, earlier[:min(len(earlier), maxEarlier)]}
}

// contents are those of a claim.
func (s *said) contents() []byte {
	to := appendText(appendText(appendText(nil, s.Member), s.Sinks), s.Lease)
	for _, c := range s.earlier {
		to = append(to, c[:]...)
	}
	return to
}

// saidBy is the inverse of contents. A claim of an earlier version has no earlier ones, no Lease, or names nobody.
func saidBy(contents []byte) said {
	r := reader{rest: contents}
	s := said{Claimant: Claimant{Member: r.text(), Sinks: r.text()}}
	if r.bad {
		return said{}
	}
	if s.Lease = r.text(); r.bad {
		s.Lease = ""
		return s
	}
	for rest := r.rest; len(rest) >= len(chain{}); rest = rest[len(chain{}):] {
		s.earlier = append(s.earlier, chain(rest))
	}
	return s
}
