package source

import (
	"errors"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// comparedUpTo is the place after the keys of n, the last of which is on a page of its own.
func comparedUpTo(keys ...string) place {
	p := placeAt("100", firstPage)
	for i, key := range keys {
		if i == len(keys)-1 {
			p.turn("token", slowPage/2)
		}
		p.read()
		p.done = "n/" + key
	}
	return p
}

// TestI3AListGoesOnAtANewerVersionWhereItWas if the server says how, and from its beginning otherwise. Either way what
// was compared is not compared again.
func TestI3AListGoesOnAtANewerVersionWhereItWas(t *testing.T) {
	for token, want := range map[string]struct {
		at       page
		repeated repetition
	}{
		"newer": {page{limit: firstPage, token: "newer"}, repetition{upTo: "n/m", last: "n/k"}},
		"":      {page{limit: firstPage, exactly: "200"}, repetition{upTo: "n/m"}},
	} {
		p := comparedUpTo("k", "m")
		p.renew("200", token)
		if p.read(); p.at != want.at || p.repeated != want.repeated || p.list != "200" {
			t.Errorf("with the token %q it goes on with %+v of at least %s, and repeats %+v", token, p.at, p.list, p.repeated)
		}
		passed := p.hasPassed(change.Key{Namespace: "n", Name: "m"})
		if !passed || p.hasPassed(change.Key{Namespace: "n", Name: "n"}) {
			t.Errorf("with the token %q it is at %s", token, p.done)
		}
	}
}

// TestI4APageThatOutlastsItsWatchesGetsSmaller: a page counts only where one watch was open while it was read. One that
// is paced, or that waits for a sink, would be read again for ever.
func TestI4APageThatOutlastsItsWatchesGetsSmaller(t *testing.T) {
	p := placeAt("100", pageSize)
	p.read()
	for _, want := range []int{pageSize / 2, pageSize / 4, pageSize / 8, pageSize / 16, firstPage, firstPage} {
		if p.read(); p.at.limit != want {
			t.Errorf("the page is of %d objects, want %d", p.at.limit, want)
		}
	}
}

// TestAPageRepeatsNothingOfTheOneBeforeIt: what fails before anything of it is compared fails whole.
func TestAPageRepeatsNothingOfTheOneBeforeIt(t *testing.T) {
	p := comparedUpTo("k", "m")
	if more := p.turn("token", slowPage/2); !more || p.start != "n/m" {
		t.Errorf("another page: %t, behind %s", more, p.start)
	}
	if p.read(); p.repeated != (repetition{}) {
		t.Errorf("it repeats %+v", p.repeated)
	}
	if p.read(); p.repeated != (repetition{upTo: "n/m", last: "n/m"}) {
		t.Errorf("read again it repeats %+v", p.repeated)
	}
	if p.turn("", slowPage/2) {
		t.Error("there is a page behind the last one")
	}
}

// TestI4APageThatIsReadAgainMayEndBeforeWhereItWas, since it is smaller then, or its list has begun anew: what follows
// is repeated up to there, and is not out of order.
func TestI4APageThatIsReadAgainMayEndBeforeWhereItWas(t *testing.T) {
	p := placeAt("100", firstPage)
	p.read()
	p.done = "n/m"
	p.renew("200", "")
	p.read()
	for _, page := range [][]string{{"n/a", "n/c"}, {"n/d", "n/k"}, {"n/l", "n/m", "n/n"}} {
		for _, key := range page {
			if again, err := p.repeated.has(key, nil); err != nil || again != (key <= "n/m") {
				t.Fatalf("%s: repeated %t, %v", key, again, err)
			}
		}
		if page[len(page)-1] > p.done {
			p.done = page[len(page)-1]
		}
		p.turn("token", slowPage/2)
		p.read()
	}
	if p.repeated != (repetition{}) || p.start != "n/n" {
		t.Errorf("behind %s it repeats %+v", p.start, p.repeated)
	}
}

// TestAPageThatIsReadAgainRepeatsItsOrder: a list that is not sorted is noticed there, too.
func TestAPageThatIsReadAgainRepeatsItsOrder(t *testing.T) {
	again := repetition{upTo: "n/m"}
	for _, key := range []string{"n/a", "n/m", "n/z"} {
		if repeated, err := again.has(key, nil); err != nil || repeated != (key <= "n/m") {
			t.Errorf("%s: repeated %t, %v", key, repeated, err)
		}
	}
	second := repetition{upTo: "n/m", last: "n/k"}
	if _, err := second.has("n/a", nil); !errors.Is(err, errUnsorted) {
		t.Errorf("a page begins before the end of the one before it, and the error is %v", err)
	}
	odd := repetition{upTo: "n/m"}
	_, first := odd.has("n/k", nil)
	if _, err := odd.has("n/a", nil); first != nil || !errors.Is(err, errUnsorted) {
		t.Errorf("the order is %v, then %v", first, err)
	}
}

// TestPagesAreAsLargeAsTheServerAndTheSinksKeepUpWith so that no list lives for a minute.
func TestPagesAreAsLargeAsTheServerAndTheSinksKeepUpWith(t *testing.T) {
	for _, c := range []struct {
		limit int
		took  time.Duration
		next  int
	}{
		{firstPage, time.Second, 4 * firstPage},
		{pageSize / 2, time.Second, pageSize},
		{pageSize, time.Second, pageSize},
		{pageSize, slowPage / 2, pageSize},
		{pageSize, slowPage + 1, pageSize / 2},
		{100, slowPage / 2, 100},
		{firstPage, slowPage + 1, firstPage},
	} {
		if next := nextLimit(c.limit, c.took); next != c.next {
			t.Errorf("behind a page of %d that took %s comes one of %d, want %d", c.limit, c.took, next, c.next)
		}
	}
}
