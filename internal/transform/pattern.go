package transform

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

// pattern is of names of environment variables, in capitals.
type pattern struct {
	text string
	part []byte // of *PART*, as most are; else nil
}

func parsePattern(text string) (p pattern, err error) {
	p.text = strings.ToUpper(text)
	if _, err := path.Match(p.text, ""); err != nil || text == "" {
		return p, fmt.Errorf("pattern %q of an environment variable: want a name, with * for any text, such as *PASSWORD*", text)
	}
	inner, open := strings.CutPrefix(p.text, "*")
	if inner, closed := strings.CutSuffix(inner, "*"); open && closed && !strings.ContainsAny(inner, `*?[\/`) {
		p.part = []byte(inner)
	}
	return p, nil
}

// matches says whether the name in capitals is one of the pattern's. A * matches no slash.
func (p *pattern) matches(upper []byte) bool {
	if len(p.part) > 0 && bytes.IndexByte(upper, '/') < 0 {
		return bytes.Contains(upper, p.part)
	}
	matched, err := path.Match(p.text, string(upper))
	return matched || err != nil
}
