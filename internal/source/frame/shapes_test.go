package frame

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// shaper writes JSON of every shape that a frame or a list may have, well and badly formed ones, as its choices say.
type shaper struct {
	choices []byte
	out     strings.Builder
}

// pick returns a number below n; when the choices are used up, 0, which is the plain case everywhere.
func (s *shaper) pick(n int) int {
	if len(s.choices) == 0 {
		return 0
	}
	c := s.choices[0]
	s.choices = s.choices[1:]
	return int(c) % n
}

// rare is true for few choices.
func (s *shaper) rare() bool { return s.pick(64) == 63 }

func (s *shaper) one(of ...string) { s.out.WriteString(of[s.pick(len(of))]) }

func (s *shaper) space() {
	if s.rare() {
		s.one(" ", "\t", "\r", "  ", "\n")
	}
}

// key writes a key, in a few ways that mean the same.
func (s *shaper) key(key string) {
	s.space()
	if s.rare() {
		i := s.pick(len(key))
		key = key[:i] + `\u00` + strconv.FormatInt(int64(key[i]), 16) + key[i+1:]
	}
	s.out.WriteString(`"` + key + `"`)
	s.space()
	s.out.WriteByte(':')
	s.space()
}

// object writes a few of the members, in any order, some of them again.
func (s *shaper) object(keys []string, value func(key string)) {
	s.out.WriteByte('{')
	n := s.pick(len(keys) + 2)
	at := s.pick(len(keys))
	for i := range n {
		if i > 0 {
			s.out.WriteByte(',')
		}
		key := keys[(at+i)%len(keys)]
		if s.rare() {
			key = keys[s.pick(len(keys))]
		}
		s.key(key)
		value(key)
		s.space()
	}
	s.out.WriteByte('}')
}

func (s *shaper) text() {
	s.one(`"a"`, `""`, `"system:node:a b"`, `"té"`, `"a\u003cb"`, `"q\"q"`, `"back\\"`, `"\\\"\\\\\""`, `"\ud83d\ude00"`, `"\ud83d"`, "\"\xff\"",
		`"0123456789012345678901234567890123456789"`, `"01234567890123456789012345678901234567\\"`, `"{[}]"`, `"😀 and more than one word of it"`, `"true"`, `null`)
}

func (s *shaper) wrong() {
	s.one(`1`, `{}`, `[]`, `true`, `-0.5e+7`, `[1,"a",{"b":[]}]`, `{"name":"x","metadata":{"name":"y"}}`, `null`)
}

func (s *shaper) any(depth int) {
	switch s.pick(6) {
	case 0:
		s.text()
	case 1:
		s.wrong()
	case 2, 3:
		if depth > 0 {
			s.object([]string{"name", "f:x", `k:{\"a\":\"b\"}`, "metadata", "."}, func(string) { s.any(depth - 1) })
			return
		}
		s.text()
	default:
		s.out.WriteString("[")
		for i := range s.pick(4) {
			if i > 0 {
				s.out.WriteByte(',')
			}
			s.any(max(0, depth-1))
		}
		s.space()
		s.out.WriteString("]")
	}
}

func (s *shaper) kubernetes() {
	s.object([]string{"kind", "apiVersion", "metadata", "spec", "data", "status"}, func(key string) {
		switch {
		case key == "metadata" && !s.rare():
			s.metadata()
		case key == "kind" || key == "apiVersion":
			s.text()
		default:
			s.any(4)
		}
	})
}

func (s *shaper) metadata() {
	s.object([]string{"name", "namespace", "uid", "resourceVersion", "generation", "annotations", "managedFields", "labels"}, func(key string) {
		switch {
		case s.rare():
			s.wrong()
		case key == "annotations":
			s.object([]string{"a", lastApplied, "y", "z"}, func(string) { s.text() })
		case key == "managedFields" || key == "labels":
			s.any(3)
		default:
			s.text()
		}
	})
}

func (s *shaper) frame() {
	s.out.WriteByte('{')
	order := []string{"type", "object"}
	if s.rare() {
		order = [][]string{{"object", "type"}, {"type"}, {"object"}, {"type", "object", "type"}, {"type", "object", "object"}, {"x", "type", "object"}}[s.pick(6)]
	}
	for i, key := range order {
		if i > 0 {
			s.out.WriteByte(',')
		}
		s.key(key)
		switch {
		case s.rare():
			s.any(2)
		case key == "type":
			s.one(`"ADDED"`, `"MODIFIED"`, `"DELETED"`, `"BOOKMARK"`, `"ERROR"`, `"added"`, `"AD\u0044ED"`, `null`)
		default:
			s.kubernetes()
		}
		s.space()
	}
	s.out.WriteByte('}')
}

func (s *shaper) list() {
	s.space()
	s.object([]string{"kind", "apiVersion", "metadata", "items"}, func(key string) {
		switch {
		case s.rare():
			s.any(2)
		case key == "items":
			s.one("[", "[", "[", "null,\"x\":[")
			for i := range s.pick(5) {
				if i > 0 {
					s.out.WriteByte(',')
				}
				s.space()
				s.kubernetes()
			}
			s.out.WriteByte(']')
		case key == "metadata":
			s.object([]string{"resourceVersion", "continue", "remainingItemCount", "selfLink"}, func(key string) {
				if key == "remainingItemCount" {
					s.one("7", "0", "null", "-1", "9223372036854775807", "9223372036854775808", "1.5", `"7"`)
					return
				}
				s.text()
			})
		default:
			s.text()
		}
	})
	s.space()
}

func shapedFrame(choices []byte) []byte {
	s := shaper{choices: choices}
	s.frame()
	return []byte(strings.ReplaceAll(s.out.String(), "\n", " "))
}

func shapedList(choices []byte) []byte {
	s := shaper{choices: choices}
	s.list()
	return []byte(s.out.String())
}

// optionsFor makes options of what a fuzzer gives.
func optionsFor(n uint8) Options {
	opts := cutEachAlone[n%4]
	if n&4 != 0 {
		opts.Kind, opts.APIVersion = `Od"d`, "v1"
	}
	return opts
}

func readerFor(n uint8) func(io.Reader) io.Reader {
	return []func(io.Reader) io.Reader{whole, iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader}[n>>3%4]
}

// TestShapes is what the fuzzers do, for a fixed time.
func TestShapes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	valid, wrong := 0, 0
	for range 10_000 {
		choices := make([]byte, rnd.IntN(300))
		for i := range choices {
			choices[i] = byte(rnd.Uint32())
		}
		n := uint8(rnd.Uint32())
		line, page := shapedFrame(choices), shapedList(choices)
		if err := checkFrame(line, optionsFor(n)); err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		if err := checkList(page, optionsFor(n), readerFor(n)); err != nil {
			t.Fatalf("%v\n%s", err, page)
		}
		if json.Valid(line) {
			valid++
		}
		if _, err := oracleFrame(line, Options{}); err != nil {
			wrong++
		}
	}
	t.Logf("of 10,000 frames %d were JSON, %d were refused", valid, wrong)
}
