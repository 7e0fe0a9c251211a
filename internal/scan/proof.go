package scan

// Proof says of one text whether it is JSON, and where the objects, lists and long strings in it are. It is used again
// for the next text. It has places in the text as numbers of four bytes, since there are many of them.
type Proof struct {
	text    []byte
	places  []place  // of the objects, lists and long strings, as they start in the text
	watched []uint32 // of the places
	key     string   // of those that are watched; "" is none
	whole   bool
	huge    bool // a number is too large for a float64
}

// place is where one is, and the number of the first that starts after it.
type place struct{ start, end, next uint32 }

// Whole says whether the text is one JSON value. Nothing else counts where it is not.
func (p *Proof) Whole() bool { return p.whole }

// Huge says whether a number in it is too large for a float64.
func (p *Proof) Huge() bool { return p.huge }

// Watched are the places that are values under the key.
func (p *Proof) Watched() []uint32 { return p.watched }

// Forget lets go of the text, and of memory that few texts need.
func (p *Proof) Forget() {
	const most = 1 << 20 // bytes
	if 12*cap(p.places)+4*cap(p.watched) > most {
		p.places, p.watched = nil, nil
	}
	p.text, p.whole = nil, false
}
