package frame

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
)

// The oracle says with encoding/json alone, and at whatever cost, what a frame or a list means.

var (
	errOracle    = errors.New("oracle: wrong")
	errNotValid  = errors.New("oracle: not JSON")
	cutEachAlone = []Options{{}, {KeepManagedFields: true}, {KeepLastApplied: true}, {KeepManagedFields: true, KeepLastApplied: true}}
)

type raws = map[string]json.RawMessage

func oracleRaws(data []byte) (raws, error) {
	var m raws
	if len(data) == 0 || json.Unmarshal(data, &m) != nil {
		return nil, errOracle
	}
	return m, nil
}

// oracleFrame returns the frame with the object uncut.
func oracleFrame(line []byte, opts Options) (f Frame, err error) {
	if !json.Valid(line) {
		return f, errNotValid
	}
	top, err := oracleRaws(line)
	if err != nil {
		return f, err
	}
	var name string
	if json.Unmarshal(top["type"], &name) != nil {
		return f, errOracle
	}
	for _, t := range []Type{Added, Modified, Deleted, Bookmark, Error} {
		if string(t) == name {
			f.Type = t
		}
	}
	if f.Type == "" || !bytes.HasPrefix(top["object"], []byte("{")) {
		return f, errOracle
	}
	if f.Type == Error {
		f.Status = top["object"]
		return f, nil
	}
	f.Object, err = oracleObject(top["object"])
	if err != nil && f.Type != Bookmark {
		if f.Object = oracleNames(top["object"]); f.Object.Name != "" && f.Object.ResourceVersion != "" {
			return f, nil
		}
	}
	return f, err
}

// oracleNames is what is known of an object that is refused.
func oracleNames(data []byte) Object {
	o := Object{Err: errOracle}
	top, _ := oracleRaws(data)
	meta, _ := oracleRaws(top["metadata"])
	for key, field := range map[string]*string{"namespace": &o.Namespace, "name": &o.Name, "uid": &o.UID, "resourceVersion": &o.ResourceVersion} {
		if raw, ok := meta[key]; ok {
			_ = json.Unmarshal(raw, field)
		}
	}
	return o
}

func oracleObject(data []byte) (o Object, err error) {
	o.JSON = data
	top, err := oracleRaws(data)
	if err != nil || top == nil {
		return o, errOracle
	}
	if _, ok := top["metadata"]; !ok {
		return o, nil
	}
	meta, err := oracleRaws(top["metadata"])
	if err != nil {
		return o, err
	}
	for key, field := range map[string]*string{"namespace": &o.Namespace, "name": &o.Name, "uid": &o.UID, "resourceVersion": &o.ResourceVersion} {
		if raw, ok := meta[key]; ok && json.Unmarshal(raw, field) != nil {
			return o, errOracle
		}
	}
	if raw, ok := meta["annotations"]; ok {
		_, err = oracleRaws(raw)
		return o, err
	}
	return o, nil
}

// compareObject says how got differs from want, which is uncut.
func compareObject(got, want Object, opts Options) error {
	if want.Err != nil {
		got.Err, want.JSON = cmp.Or(checkError(got.Err), want.Err), nil
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("got %+v, want %+v", got, want)
		}
		return nil
	}
	if !json.Valid(got.JSON) {
		return fmt.Errorf("the object is no JSON: %.2000s", got.JSON)
	}
	if err := compareCut(got.JSON, want.JSON, opts); err != nil {
		return fmt.Errorf("%w\n got %.2000s\nfrom %.2000s", err, got.JSON, want.JSON)
	}
	got.JSON, want.JSON = nil, nil
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %+v, want %+v", got, want)
	}
	return nil
}

// compareCut checks that every value of got has the bytes that it has in whole, and that only cuts are missing.
func compareCut(got, whole []byte, opts Options) error {
	top, wholeTop := must(oracleRaws(got)), must(oracleRaws(whole))
	if wholeTop["metadata"] == nil || string(wholeTop["metadata"]) == "null" {
		return compareRaws("object", top, wholeTop)
	}
	meta, wholeMeta := must(oracleRaws(top["metadata"])), must(oracleRaws(wholeTop["metadata"]))
	if err := compareRaws("object", top, wholeTop, "metadata"); err != nil {
		return err
	}
	if !opts.KeepManagedFields {
		delete(wholeMeta, "managedFields")
	}
	if wholeMeta["annotations"] == nil || string(wholeMeta["annotations"]) == "null" {
		return compareRaws("metadata", meta, wholeMeta)
	}
	annotations, wholeAnnotations := must(oracleRaws(meta["annotations"])), must(oracleRaws(wholeMeta["annotations"]))
	if !opts.KeepLastApplied {
		delete(wholeAnnotations, lastApplied)
	}
	return errors.Join(compareRaws("metadata", meta, wholeMeta, "annotations"), compareRaws("annotations", annotations, wholeAnnotations))
}

func compareRaws(where string, got, want raws, except ...string) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s has %d members, want %d", where, len(got), len(want))
	}
	for key := range want {
		if len(except) > 0 && except[0] == key {
			continue
		}
		if raw, ok := got[key]; !ok || !bytes.Equal(raw, want[key]) {
			return fmt.Errorf("%s.%s is %s, want %s", where, key, raw, want[key])
		}
	}
	return nil
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// checkFrame holds a line against the oracle.
func checkFrame(line []byte, opts Options) error {
	if bytes.IndexByte(line, '\n') >= 0 || len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	got, err := NewReader(strings.NewReader(string(line)+"\n"), opts).Next()
	want, wrong := oracleFrame(line, opts)
	switch {
	case wrong == errNotValid || !isWritten(line):
		return checkError(err)
	case (err != nil) != (wrong != nil):
		return fmt.Errorf("got error %v, want %v", err, wrong)
	case err != nil:
		return checkError(err)
	case got.Type != want.Type || !bytes.Equal(got.Status, want.Status):
		return fmt.Errorf("got %v %q, want %v %q", got.Type, got.Status, want.Type, want.Status)
	case got.Type == Error:
		return nil
	case want.Object.Err != nil:
		return compareObject(got.Object, want.Object, opts)
	}
	return compareObject(got.Object, want.Object, opts)
}

// isWritten says whether an API server could write the line, which is valid JSON: a frame has two members, and an
// object its metadata once.
func isWritten(line []byte) bool {
	top, err := oracleRaws(line)
	if err != nil || top == nil {
		return true
	}
	if countKey(line, "") > 2 {
		return false
	}
	return !bytes.HasPrefix(top["object"], []byte("{")) || countKey(top["object"], "metadata") <= 1
}

// checkError checks that an error is of what was read, and shows none of the values that shapes have.
func checkError(err error) error {
	if err != nil && err != io.ErrUnexpectedEOF && (!IsUnreadable(err) || strings.Contains(err.Error(), "one word of it")) {
		return fmt.Errorf("the error is %#v", err)
	}
	return nil
}

// oracleList returns the items uncut, with kind and apiVersion put in front.
func oracleList(page []byte, opts Options) (meta ListMeta, items []Object, err error) {
	if !json.Valid(page) {
		return meta, nil, errNotValid
	}
	var list struct {
		top  raws
		meta raws
	}
	if list.top, err = oracleRaws(page); err != nil || list.top == nil || countKey(page, "items") != 1 {
		return meta, nil, errOracle
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(list.top["items"], &raw); err != nil {
		return meta, nil, errOracle
	}
	for _, item := range raw {
		o, err := oracleItem(item, opts)
		if err != nil {
			o = oracleNames(item)
		}
		items = append(items, o)
	}
	if _, ok := list.top["metadata"]; !ok {
		return meta, items, nil
	}
	if list.meta, err = oracleRaws(list.top["metadata"]); err != nil {
		return meta, nil, err
	}
	meta.Remaining = -1
	for key, field := range map[string]any{"resourceVersion": &meta.ResourceVersion, "continue": &meta.Continue, "remainingItemCount": &meta.Remaining} {
		if raw, ok := list.meta[key]; ok && json.Unmarshal(raw, field) != nil {
			return meta, nil, errOracle
		}
	}
	if meta.Continue == "" {
		meta.Remaining = 0
	}
	return meta, items, nil
}

func oracleItem(item []byte, opts Options) (Object, error) {
	if bytes.ContainsRune(item, '\n') {
		var compact bytes.Buffer
		if err := json.Compact(&compact, item); err != nil {
			return Object{}, err
		}
		item = compact.Bytes()
	}
	top, err := oracleRaws(item)
	if err != nil || top == nil {
		return Object{}, errOracle
	}
	var front []string
	if _, ok := top["kind"]; !ok && opts.Kind != "" {
		front = append(front, `"kind":`+string(must(json.Marshal(opts.Kind))))
	}
	if _, ok := top["apiVersion"]; !ok && opts.APIVersion != "" {
		front = append(front, `"apiVersion":`+string(must(json.Marshal(opts.APIVersion))))
	}
	text := strings.Join(front, ",")
	if len(front) > 0 && len(top) > 0 {
		text += ","
	}
	o, err := oracleObject([]byte("{" + text + string(item[1:])))
	return o, err
}

// countKey counts a key of the object.
func countKey(data []byte, key string) int {
	dec := json.NewDecoder(bytes.NewReader(data))
	n := 0
	must(dec.Token())
	for dec.More() {
		if at := must(dec.Token()); key == "" || at == key {
			n++
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			panic(err)
		}
	}
	return n
}

func checkList(page []byte, opts Options, wrap func(io.Reader) io.Reader) error {
	var items []Object
	meta, err := ScanList(wrap(bytes.NewReader(page)), opts, func(o Object) error {
		items = append(items, o)
		return nil
	})
	wantMeta, want, wrong := oracleList(page, opts)
	switch {
	case wrong == errNotValid:
		return checkError(err)
	case (err != nil) != (wrong != nil):
		return fmt.Errorf("got error %v, want %v", err, wrong)
	case err != nil:
		return checkError(err)
	case !reflect.DeepEqual(meta, wantMeta):
		return fmt.Errorf("got %+v, want %+v", meta, wantMeta)
	case len(items) != len(want):
		return fmt.Errorf("got %d items, want %d", len(items), len(want))
	}
	for i := range items {
		if err := compareObject(items[i], want[i], opts); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
		if bytes.IndexByte(items[i].JSON, '\n') >= 0 {
			return fmt.Errorf("item %d has several lines", i)
		}
	}
	return nil
}

func whole(r io.Reader) io.Reader { return r }

// TestOracle makes sure that the oracle would notice.
func TestOracle(t *testing.T) {
	const text = `{"metadata":{"name":"a","annotations":{"x":"y","` + lastApplied + `":"z"},"managedFields":[1]},"spec":1}`
	want := must(oracleObject([]byte(text)))
	for _, got := range []string{
		text,
		`{"metadata":{"name":"a","annotations":{"x":"y"},"managedFields":[1]},"spec":1}`,
		`{"metadata":{"name":"a","annotations":{}},"spec":1}`,
		`{"metadata":{"name":"a","annotations":{"x":"y"}},"spec":2}`,
		`{"metadata":{"name":"b","annotations":{"x":"y"}},"spec":1}`,
		`{"metadata":{"name":"a","annotations":{"x":"y"}}}`,
		`{"metadata":{"name":"a","annotations":{"x":"y"}},"spec":1`,
	} {
		if compareObject(Object{Name: "a", JSON: []byte(got)}, want, Options{}) == nil {
			t.Errorf("the oracle takes %s", got)
		}
	}
	good := Object{Name: "a", JSON: []byte(`{"metadata":{"name":"a","annotations":{"x":"y"}},"spec":1}`)}
	if err := compareObject(good, want, Options{}); err != nil {
		t.Error(err)
	}
}
