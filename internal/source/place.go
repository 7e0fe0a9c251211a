package source

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// firstPage is the limit of the first page of a full snapshot, whose progress counts only after it.
const firstPage = 16

// place is where in its list a snapshot is: it goes on after every failure with the page that failed. It is pure.
type place struct {
	at       page
	list     string // the version that the page has at least
	start    string // the joined key after which the page begins, "" for the first page
	done     string // the joined key that was compared last
	begun    bool   // a part of the page was compared
	repeated repetition
}

// placeAt is the begin of a list at exactly the version.
func placeAt(version string, limit int) place {
	return place{at: page{limit: limit, exactly: version}, list: version}
}

// read begins to read the page, for the first time or again: then with half of its objects, since it may have taken
// longer than the watch beside it.
func (p *place) read() {
	if p.repeated = (repetition{}); p.begun || p.start < p.done {
		p.repeated = repetition{upTo: p.done, last: p.start}
	}
	if p.begun {
		p.at.limit = max(p.at.limit/2, firstPage)
	}
	p.begun = true
}

// turn goes to the page of the token, after one that took so long, and says whether there is one. A page that was read
// again may end before the key that was compared last.
func (p *place) turn(token string, took time.Duration) (more bool) {
	if p.begun, p.start = false, p.done; p.repeated.upTo != "" {
		p.start = p.repeated.last
	}
	p.at.token, p.at.limit = token, nextLimit(p.at.limit, took)
	return token != ""
}

// renew makes the list go on at a newer version: with the page of the token, of which version that is the server
// chooses, or where there is none from the beginning.
func (p *place) renew(version, token string) {
	p.list = version
	p.at.token, p.at.exactly = token, ""
	if token == "" {
		p.at.exactly, p.start = version, ""
	}
}

// hasPassed says whether a list that is sorted is after the key.
func (p *place) hasPassed(key change.Key) bool { return key.String() <= p.done }

// slowPage is how long a page may take before the next ones become smaller: an API server ends a list after a minute.
const slowPage = 15 * time.Second

// nextLimit is the limit of the page after one that took so long. It grows where a page of four times the size would
// not be slow either.
func nextLimit(limit int, took time.Duration) int {
	switch {
	case took > slowPage:
		return max(limit/2, firstPage)
	case took < slowPage/4:
		return min(4*limit, pageSize)
	}
	return limit
}

// repetition is what a page that is read again repeats: the keys up to the last one that was compared.
type repetition struct {
	upTo string // the joined key, "" where nothing is repeated
	last string // the one before, at first that after which the page begins
}

// has says whether the joined key was compared before; listed are those that were, where the list is not sorted.
func (r *repetition) has(joined string, listed map[string]struct{}) (bool, error) {
	if listed != nil {
		_, again := listed[joined]
		return again, nil
	}
	if r.upTo == "" || joined > r.upTo {
		r.upTo = ""
		return false, nil
	}
	if joined <= r.last {
		return false, errUnsorted
	}
	r.last = joined
	return true, nil
}
