package frame

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// listCase is a page. What it means the oracle says.
type listCase struct {
	name, page string
	says       []string // of each item a part, or of what is said where it cannot be read; nil is what the oracle says
	err        string   // contained in the error
}

func listCases() []listCase {
	const front = `{"kind":"Pod","apiVersion":"v1"}`
	return []listCase{
		{name: "built-in",
			page: `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"tok","remainingItemCount":3},"items":[{"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"1","managedFields":[{}]},"spec":{}},{"metadata":{"name":"b"}}]}` + "\n"},
		{name: "custom resources",
			page: `{"apiVersion":"ex.io/v1","items":[{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"managedFields":[],"name":"w"}}],"kind":"WidgetList","metadata":{"continue":"","resourceVersion":"12"}}`},
		{name: "no items", page: `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}`},
		{name: "null items",
			page: `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":null}`},
		{name: "null metadata", page: `{"items":[],"metadata":null}`},
		{name: "null values", page: `{"items":[],"metadata":{"resourceVersion":null,"continue":null,"remainingItemCount":null}}`},
		{name: "half of kind and apiVersion",
			page: `{"items":[{"kind":"X"},{"apiVersion":"y/v1"},{},{ },{"kind":null,"apiVersion":""}],"metadata":{}}`},
		{name: "pretty",
			page: "{\n  \"kind\": \"PodList\",\n  \"metadata\": {\n    \"resourceVersion\": \"9\"\n  },\n  \"items\": [\n    {\n      \"metadata\": {\n        \"name\": \"a  b\",\n        \"managedFields\": []\n      },\n      \"spec\": { }\n    }\n  ]\n}\n"},
		{name: "lines within an item, outside of what is scanned",
			page: "{\"items\":[{\"metadata\":{\"name\":\"a\"},\"spec\":{\n\"b\":\r\n1}}]}"},
		{name: "escaped keys",
			page: `{"it\u0065ms":[{"met\u0061data":{"name":"a"}}],"metadat\u0061":{"r\u0065sourceVersion":"\u0031"}}`},
		{name: "the last metadata counts",
			page: `{"metadata":{"resourceVersion":"1","continue":"x"},"items":[],"metadata":{"resourceVersion":"2","resourceVersion":"3"}}`},
		{name: "more keys", page: `{"a":{"items":[1]},"b":[{}],"c":"]}","d":-1.5e3,"e":true,"items":[],"f":null}`},
		{name: "items twice", page: `{"items":[],"items":[]}`, err: "items twice"},
		{name: "a Status", page: `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":504}`, err: "no items"},
		{name: "empty object", page: `{}`, err: "no items"},
		{name: "items are an object", page: `{"items":{}}`, err: "not an array"},
		{name: "an item is null", page: `{"items":[null]}`, says: []string{"no object"}},
		{name: "an item is an array", page: `{"items":[[],{}]}`, says: []string{"no object", front}},
		{name: "an item is a string", page: `{"items":["{}"]}`, says: []string{"no object"}},
		{name: "a name is a number", page: `{"items":[{"metadata":{"name":1}},{}]}`, says: []string{"no string", front}},
		{name: "annotations are an array", page: `{"items":[{"metadata":{"annotations":[],"n\u0061me":"x"}}]}`, says: []string{"x: scan JSON: metadata.annotations"}},
		{name: "metadata is an array", page: `{"items":[],"metadata":[]}`, err: "no object"},
		{name: "resourceVersion is a number", page: `{"items":[],"metadata":{"resourceVersion":1}}`, err: "cannot unmarshal"},
		{name: "count is too large", page: `{"items":[],"metadata":{"remainingItemCount":9223372036854775808}}`, err: "cannot unmarshal"},
		{name: "nothing", page: ``, err: "unexpected EOF"},
		{name: "space", page: " \n", err: "unexpected EOF"},
		{name: "text", page: "404 page not found\n", err: "want {"},
		{name: "an array", page: `[]`, err: "want {"},
		{name: "more after it", page: `{"items":[]} {}`, err: "more after"},
		{name: "no key", page: `{1:2}`, err: "want a key"},
		{name: "no colon", page: `{"items"[]}`, err: "want :"},
		{name: "no comma", page: `{"items":[]"a":1}`, err: "want ,"},
		{name: "no comma among items", page: `{"items":[{}{}]}`, err: "want ,"},
		{name: "a comma too many", page: `{"items":[{},]}`, err: "want a value"},
		{name: "no value", page: `{"items":}`, err: "want a value"},
		{name: "a broken item", page: `{"items":[{"a" 1},{}]}`, says: []string{"invalid character", front}},
		{name: "a broken item with a name", page: `{"items":[{"metadata": {"name":"x","uid":"u" },"a" 1},{}]}`, says: []string{"x: scan JSON: invalid", front}},
		{name: "broken metadata", page: `{"items":[],"metadata":{"a":tru}}`, err: "invalid character"},
	}
}

func scanList(page string, opts Options) (meta ListMeta, items []string, err error) {
	meta, err = ScanList(strings.NewReader(page), opts, func(o Object) error {
		if o.Err != nil {
			o.JSON = []byte(o.Name + ": " + o.Err.Error())
		}
		items = append(items, string(o.JSON))
		return nil
	})
	return meta, items, err
}

func TestLists(t *testing.T) {
	opts := Options{Kind: "Pod", APIVersion: "v1"}
	for _, c := range listCases() {
		t.Run(c.name, func(t *testing.T) {
			_, items, err := scanList(c.page, opts)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got error %v, want %q in it", err, c.err)
				}
			}
			if c.err == "" && (err != nil || c.says != nil && !slices.EqualFunc(items, c.says, strings.Contains)) {
				t.Errorf("got %v, and items %q, want %q", err, items, c.says)
			}
			for n := range uint8(32) {
				if err := checkList([]byte(c.page), optionsFor(n), readerFor(n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestHalfAListIsNoList cuts pages at every byte: what is left never passes for a list.
func TestHalfAListIsNoList(t *testing.T) {
	for _, c := range listCases() {
		if c.err != "" {
			continue
		}
		page := strings.TrimRight(c.page, "\n")
		for n := range len(page) {
			if _, _, err := scanList(page[:n], Options{}); err != io.ErrUnexpectedEOF {
				t.Fatalf("%s: of %d bytes: %v", c.name, n, err)
			}
		}
	}
}

func TestErrorsOfListsPass(t *testing.T) {
	broken := errors.New("broken")
	page := `{"items":[{},{},{}]}`
	calls := 0
	if _, err := ScanList(strings.NewReader(page), Options{}, func(Object) error { calls++; return broken }); err != broken || calls != 1 {
		t.Error(err, calls)
	}
	for n := range len(page) + 1 {
		r := io.MultiReader(strings.NewReader(page[:n]), iotest.ErrReader(broken))
		if _, err := ScanList(r, Options{}, func(Object) error { return nil }); err != broken {
			t.Errorf("broken after %d bytes: %v", n, err)
		}
	}
}

// pages writes a list without ever holding it.
type pages struct {
	item  string
	items int
	rest  string
	state int
}

func (p *pages) Read(b []byte) (int, error) {
	for p.rest == "" {
		switch {
		case p.state == 0:
			p.rest = `{"kind":"PodList","items":[` + p.item
		case p.state < p.items:
			p.rest = "," + p.item
		case p.state == p.items:
			p.rest = `],"metadata":{"resourceVersion":"1"}}`
		default:
			return 0, io.EOF
		}
		p.state++
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// TestListsAreNotHeld reads 100 items of 1 MiB.
func TestListsAreNotHeld(t *testing.T) {
	p := &pages{item: `{"metadata":{"name":"a"},"data":"` + strings.Repeat("x", 1<<20) + `"}`, items: 100}
	before, most, n := heap(), uint64(0), 0
	_, err := ScanList(p, Options{}, func(o Object) error {
		if n++; n%10 == 0 {
			most = max(most, heap())
		}
		runtime.KeepAlive(o)
		return nil
	})
	if err != nil || n != p.items {
		t.Fatal(n, err)
	}
	if most > before+8<<20 {
		t.Errorf("%d MiB were held", (most-before)>>20)
	}
}

// TestI6WhatIsTooLargeEndsTheList, whether it has an end or not.
func TestI6WhatIsTooLargeEndsTheList(t *testing.T) {
	page := fmt.Sprintf(`{"items":[{"a":%q},{"a":%q}]}`, longText, strings.Repeat(longText, 3))
	for n := range uint8(32) {
		for limit, want := range map[int]error{100: ErrTooLarge, 1000: nil} {
			if _, err := ScanList(readerFor(n)(strings.NewReader(page)), Options{maxBytes: limit}, func(Object) error { return nil }); err != want {
				t.Errorf("limit %d: %v", limit, err)
			}
		}
	}
	endless := io.MultiReader(strings.NewReader(`{"items":[{"a":"`), &loop{text: []byte("xxxxxxxx")})
	if _, err := ScanList(endless, Options{maxBytes: 1 << 16}, func(Object) error { return nil }); err != ErrTooLarge {
		t.Error(err)
	}
}

// TestAllocationsOfLists is a bound of what an item costs: slabs are shared by many.
func TestAllocationsOfLists(t *testing.T) {
	for most, object := range map[float64]func(i int) string{0.3: pod, 0.15: small} {
		const items = 500
		var list []string
		for i := range items {
			list = append(list, object(i))
		}
		page := `{"metadata":{"resourceVersion":"7"},"items":[` + strings.Join(list, ",") + "]}"
		got := testing.AllocsPerRun(5, func() {
			_, err := ScanList(records{strings.NewReader(page)}, Options{Kind: "Pod", APIVersion: "v1"}, func(Object) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
		}) / items
		if got > most {
			t.Errorf("%v allocations an item of %d bytes, want at most %v", got, len(list[0]), most)
		}
	}
}

// TestItemsAreTheSameHoweverTheyCome holds the one pass against the two that find an item's end first, which are left
// where an item is not held whole: large items after small ones, in pieces.
func TestItemsAreTheSameHoweverTheyCome(t *testing.T) {
	for _, object := range []func(i int) string{pod, small, func(i int) string { return strings.Repeat(" ", i) + "{" + small(i)[1:] }} {
		var list []string
		for i := range 20 {
			list = append(list, object(i), `{"metadata":{"name":"x"}}`)
		}
		page := `{"metadata":{"resourceVersion":"7"},"items":[` + strings.Join(list, ",") + "]}"
		_, want, err := scanList(page, Options{})
		if err != nil || len(want) != len(list) {
			t.Fatal(len(want), err)
		}
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "records": func(r io.Reader) io.Reader { return records{r} },
		} {
			var got []string
			_, err := ScanList(wrap(strings.NewReader(page)), Options{}, func(o Object) error { got = append(got, string(o.JSON)); return nil })
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %d items, %v", name, len(got), err)
			}
		}
	}
}
