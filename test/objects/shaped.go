package objects

import "strings"

// Shaped is an object that the choices make, one byte for each: with odd keys, some twice, odd white space and numbers,
// text that is no UTF-8, and, with luck, not even JSON. A fuzzer finds its way among these shapes, where it would
// mostly break an object that it is given.
func Shaped(choices []byte) []byte {
	s := shaper{choices: choices}
	s.object(0)
	return []byte(s.text.String())
}

type shaper struct {
	choices []byte
	text    strings.Builder
}

// pick is one of n; the first, which ends everything, when there are no more choices.
func (s *shaper) pick(n int) int {
	if len(s.choices) == 0 {
		return 0
	}
	choice := int(s.choices[0]) % n
	s.choices = s.choices[1:]
	return choice
}

func (s *shaper) one(of ...string) { s.text.WriteString(of[s.pick(len(of))]) }

func (s *shaper) space() {
	if s.pick(8) == 7 {
		s.one(" ", "\n\t", "\r", "     ", "\v", "\ufeff", "\x00")
	}
}

func (s *shaper) object(depth int) {
	s.text.WriteByte('{')
	for i := 0; s.pick(8) > 1; i++ {
		s.separate(i)
		s.one(`"metadata"`, `"env"`, `"name"`, `"value"`, `"a"`, `"b"`, `"status"`, `"phase"`, `"labels"`, `"spec"`, `"data"`,
			`"\u0065nv"`, `"n\u0061me"`, `"v\u0061lue"`, `"d\u0061ta"`, `"ph\u0061se"`, `"\u0061"`, `""`, `"{\"a\":"`, `"}]}"`, `"a\\"`, `"a\""`,
			"\"\xff\"", `"\ud800"`, "\"\ufffd\"", `"é"`, `"\u00e9"`, `"`+strings.Repeat("k", 5000)+`"`, `"containers"`, `"c"`, `a`)
		s.space()
		s.one(":", ":", ":", ":", ":", ":", ":", ": ", "::", "")
		s.space()
		s.value(depth + 1)
		s.space()
	}
	s.one("}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "]", "")
}

func (s *shaper) list(depth int) {
	s.text.WriteByte('[')
	for i := 0; s.pick(8) > 1; i++ {
		s.separate(i)
		s.value(depth + 1)
		s.space()
	}
	s.one("]", "]", "]", "]", "]", "]", "]", "]", "]", "]", "]", "}", "")
}

func (s *shaper) separate(i int) {
	s.space()
	if i > 0 {
		s.one(",", ",", ",", ",", ",", ",", ",", ",", ",", ",", ",", ",,", " ")
		s.space()
	}
}

func (s *shaper) value(depth int) {
	switch s.pick(8) {
	case 1, 2, 3:
		if depth < 60 {
			s.object(depth)
			return
		}
	case 4, 5:
		if depth < 60 {
			s.list(depth)
			return
		}
	case 6:
		s.one("0", "-0", "1", "-12", "1.50", "1e3", "1E+400", "1e-400", "-0.0e-0", "9223372036854775807", "9223372036854775808", "0.1e+308", "9e307",
			strings.Repeat("9", 308), strings.Repeat("9", 310), "0."+strings.Repeat("1", 2000), "01", "1.", ".5", "+1", "-", "1e", "0x1", "NaN")
		return
	}
	s.one(`""`, `"Running"`, `"PASSWORD"`, `"P\u0061SS"`, `"s3cr3t"`, `"a"`, "null", "true", "false", `"\""`, `"\\"`, `"\\\"}]"`, `"\n\u0000\/"`,
		`"é😀"`, `"\ud83d\ude00"`, "\"\xff\xfe\"", `"\udc00x"`, `"`+strings.Repeat(`x\"`, 50)+`"`, `"7"`, "\"\n\"", `"\x"`, `"\u12"`, "nul", "tru", `"`)
}
