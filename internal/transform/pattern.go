package transform

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// pattern is of names of environment variables, in capitals. It is written as those of paths are, but a slash is a
// letter like any other: names may have some.
type pattern struct {
	part []byte         // of *PART*, as most are; else nil
	all  *regexp.Regexp // of others
}

func parsePattern(text string) (p pattern, err error) {
	upper := strings.ToUpper(text)
	if _, err := path.Match(upper, ""); err != nil || text == "" {
		return p, fmt.Errorf("pattern %q of an environment variable: want a name, with * for any text, such as *PASSWORD*", text)
	}
	inner, open := strings.CutPrefix(upper, "*")
	if inner, closed := strings.CutSuffix(inner, "*"); open && closed && !strings.ContainsAny(inner, `*?[\`) {
		p.part = []byte(inner)
		return p, nil
	}
	if p.all, err = regexp.Compile(expression(upper)); err != nil {
		return p, fmt.Errorf("pattern %q of an environment variable: %w", text, err)
	}
	return p, nil
}

// expression is the pattern, which path.Match can read, as package regexp writes it.
func expression(pattern string) string {
	var b strings.Builder
	class, start := false, false // in one; at its first character, where a ] cannot be
	for rest := []rune(pattern); len(rest) > 0; rest = rest[1:] {
		first := start
		start = false
		switch c := rest[0]; {
		case c == '\\':
			rest = rest[1:]
			fmt.Fprintf(&b, `\x{%x}`, rest[0])
		case class && c == ']':
			class = false
			b.WriteRune(c)
		case class && (c == '-' || first && c == '^'):
			start = first && c == '^'
			b.WriteRune(c)
		case !class && c == '[':
			class, start = true, true
			b.WriteRune(c)
		case !class && c == '*':
			b.WriteString(".*")
		case !class && c == '?':
			b.WriteString(".")
		default:
			fmt.Fprintf(&b, `\x{%x}`, c)
		}
	}
	return "^(?s:" + b.String() + ")$"
}

// matches says whether the name in capitals is one of the pattern's.
func (p *pattern) matches(upper []byte) bool {
	if p.all == nil {
		return bytes.Contains(upper, p.part)
	}
	return p.all.Match(upper)
}
