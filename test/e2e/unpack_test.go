package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// hashed is how a value looks that was redacted.
const hashed = `"hmac-sha256:`

// unpacked are the parts of a state's values that are compressed.
type unpacked struct{ chunks, images int } // with a hash in them: of spooled records, and of kept objects

// searchState looks through every key and value of the state, also those that are packed, as the files are now: the
// exporter must be dead or stopped. It knows nothing of what a table of the state means.
func (p *plant) searchState() (found unpacked) {
	p.t.Helper()
	dir := p.t.TempDir() // whoever opens a database may tidy it up
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(p.r.dir, "state"))); err != nil {
		p.t.Fatal(err)
	}
	db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: pebble.FormatValueSeparation, Logger: silent{}})
	if err != nil {
		p.t.Fatal(err)
	}
	entries, err := db.NewIter(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	for valid := entries.First(); valid; valid = entries.Next() {
		value, err := entries.ValueAndErr()
		if err != nil {
			p.t.Fatal(err)
		}
		p.search("the state", append(entries.Key(), value...))
		for _, text := range frames(value) {
			p.search("a packed value of the state", text)
			if bytes.Contains(text, []byte(hashed)) {
				found.chunks++
			}
		}
		if text := block(value); text != nil {
			p.search("a packed value of the state", text)
			if bytes.Contains(text, []byte(hashed)) {
				found.images++
			}
		}
	}
	if err := entries.Close(); err != nil {
		p.t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		p.t.Fatal(err)
	}
	return found
}

// frames are the contents of zstd frames, each of which begins with four known bytes (RFC 8878, 3.1.1).
func frames(value []byte) (texts [][]byte) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	defer decoder.Close()
	magic := []byte{0x28, 0xb5, 0x2f, 0xfd}
	for at := bytes.Index(value, magic); at >= 0; {
		if text, err := decoder.DecodeAll(value[at:], nil); err == nil {
			texts = append(texts, text)
		}
		next := bytes.Index(value[at+1:], magic)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return texts
}

// block is the S2 block of an object that the value ends with, nil where there is none. It has no mark at its
// beginning.
func block(value []byte) []byte {
	for at := range min(len(value), 256) {
		if size, err := s2.DecodedLen(value[at:]); err != nil || size > maxPayload { // which Decode would take, whatever it is
			continue
		}
		if text, err := s2.Decode(nil, value[at:]); err == nil && bytes.HasPrefix(text, []byte("{")) && bytes.HasSuffix(bytes.TrimSpace(text), []byte("}")) {
			return text
		}
	}
	return nil
}

// silent hears nothing of what the database has to say about itself.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	panic(strings.TrimSpace(format))
}
