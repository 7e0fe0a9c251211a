package transform

import "github.com/kubecdc/kubecdc/internal/scan"

// trail are containers, each in the one before: the way to the last variables that were found in a value.
type trail []trace

// trace is a container on the way.
type trace struct {
	scan.Cursor     // before its next member
	end         int // of it in the text
	index       int // of that member
	depth       int // of its path
	bracket     byte
}

// to goes from a value, where the field is, to what stands at a place within. It goes on where it was for the one
// before, so that no member is stepped over twice: whoever writes objects chooses how many variables are in one. Of the
// trail, so many containers are those of another value.
func (t *trail) to(at int, value scan.Cursor, others int, f *field) {
	if !f.bound {
		return
	}
	for len(*t) > others && (*t)[len(*t)-1].end <= at {
		*t = (*t)[:len(*t)-1]
	}
	if len(*t) == others {
		t.descend(value, f)
	}
	for {
		member, deeper := (*t)[len(*t)-1].approach(at, f)
		if !deeper {
			return
		}
		t.descend(member, f)
	}
}

// descend adds the container at the cursor, where the field is.
func (t *trail) descend(c scan.Cursor, f *field) {
	end, bracket := c, byte('}')
	end.Skip()
	if c.Byte() == '[' {
		bracket = ']'
	}
	c.Enter()
	*t = append(*t, trace{c, end.At(), 0, len(f.path), bracket})
}

// approach goes to the member in which the place is, and says whether that is deeper in it.
func (t *trace) approach(at int, f *field) (member scan.Cursor, deeper bool) {
	for t.Next(t.bracket) {
		var key []byte
		if t.bracket == '}' {
			key = t.Key()
		}
		member = t.Cursor
		t.Skip()
		if t.index++; t.At() <= at {
			continue
		}
		if key != nil {
			f.member(t.depth, scan.Text(key))
		} else {
			f.item(t.depth, t.index-1)
		}
		return member, member.At() != at
	}
	return member, false // never: the place is within
}
