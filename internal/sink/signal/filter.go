package signal

import (
	"fmt"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// conditions is what a filter could be, for those who get it wrong.
const conditions = "want namespace='shop', name='web', labels.app='web' or selector='app=web', joined by AND"

// parseFilter reads the filter of an additional condition: SQL of conditions that an API server can select by. The
// selector in what it returns was not looked at.
func parseFilter(text string) (change.Limits, error) {
	p := &parser{rest: text}
	for {
		p.condition()
		switch word := p.word(); {
		case p.err != nil:
			return change.Limits{}, fmt.Errorf("filter %.100q: %w: %s", text, p.err, conditions)
		case word == "":
			p.limits.Selector = strings.Join(p.selectors, ",")
			return p.limits, nil
		case !strings.EqualFold(word, "and"):
			p.fail("%.40q cannot be followed", word)
		}
	}
}

// parser takes one token after the other off a filter. After an error there are none.
type parser struct {
	rest      string
	limits    change.Limits
	selectors []string
	err       error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err, p.rest = fmt.Errorf(format, args...), ""
	}
}

// condition reads a column, an operator and a value, or several.
func (p *parser) condition() {
	column := p.word()
	operator := strings.ToLower(p.operator())
	var values []string
	if strings.HasSuffix(operator, "in") {
		values = p.list()
	} else {
		values = []string{p.value()}
	}
	if p.err == nil {
		p.mean(column, operator, values)
	}
}

// mean is what the condition asks for.
func (p *parser) mean(column, operator string, values []string) {
	plain, _ := cutFold(column, "metadata.")
	key, isLabel := cutFold(plain, "labels.")
	switch is := func(name string) bool { return strings.EqualFold(plain, name) }; {
	case isLabel:
		p.label(key, operator, values)
	case operator != "=":
		p.fail("%.40s can be compared with = only", column)
	case is("namespace"):
		p.once(&p.limits.Namespace, column, values[0])
	case is("name"):
		p.once(&p.limits.Name, column, values[0])
	case is("selector") || is("labelSelector"):
		p.selectors = append(p.selectors, values[0])
	default:
		p.fail("an API server cannot select by %.40q", column)
	}
}

// cutFold is the text after the prefix, in whatever case that is written.
func cutFold(text, prefix string) (rest string, found bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}

func (p *parser) once(into *string, column, value string) {
	switch {
	case value == "":
		p.fail("%s is empty", column)
	case *into != "" && *into != value:
		p.fail("%s is %.70q and %.70q at once", column, *into, value)
	}
	*into = value
}

func (p *parser) label(key, operator string, values []string) {
	if key == "" {
		p.fail("a label has no name")
	}
	for _, text := range append([]string{key}, values...) {
		if !isPlain(text) {
			p.fail("%.70q cannot be of a label", text)
		}
	}
	requirement := key + operator + values[0]
	switch operator {
	case "in":
		requirement = key + " in (" + strings.Join(values, ",") + ")"
	case "not in":
		requirement = key + " notin (" + strings.Join(values, ",") + ")"
	}
	p.selectors = append(p.selectors, requirement)
}

// isPlain says whether there is nothing in the text that means something in a selector.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !isOfWord(r) })
}

func isOfWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r)
}

// word takes a column or a keyword, of which parts may be quoted as SQL does it; "" at the end.
func (p *parser) word() string {
	p.skipBlanks()
	var word strings.Builder
	for more := true; more; {
		var part string
		part, more = p.partOfWord()
		word.WriteString(part)
	}
	if word.Len() == 0 && p.rest != "" {
		p.fail("%.20q is not expected", p.rest)
	}
	return word.String()
}

// partOfWord takes what is quoted, or as much as is not; false is that the word is over.
func (p *parser) partOfWord() (part string, more bool) {
	if p.rest != "" && (p.rest[0] == '"' || p.rest[0] == '`') {
		inner, rest, closed := strings.Cut(p.rest[1:], p.rest[:1])
		if !closed {
			p.fail("a %s is not closed", p.rest[:1])
			return "", false
		}
		p.rest = rest
		return inner, true
	}
	end := strings.IndexFunc(p.rest, func(r rune) bool { return !isOfWord(r) })
	if end < 0 {
		end = len(p.rest)
	}
	part, p.rest = p.rest[:end], p.rest[end:]
	return part, end > 0
}

func (p *parser) skipBlanks() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// operator takes =, !=, in or not in. Other spellings of SQL are made one of these.
func (p *parser) operator() string {
	p.skipBlanks()
	for _, spelled := range [][2]string{{"<>", "!="}, {"!=", "!="}, {"==", "="}, {"=", "="}} {
		if rest, found := strings.CutPrefix(p.rest, spelled[0]); found {
			p.rest = rest
			return spelled[1]
		}
	}
	switch word := strings.ToLower(p.word()); {
	case word == "in":
		return word
	case word == "not" && strings.EqualFold(p.word(), "in"):
		return "not in"
	}
	p.fail("an operator is missing")
	return ""
}

// value takes a text in single quotes, in which two of them are one, or a word.
func (p *parser) value() string {
	p.skipBlanks()
	if !strings.HasPrefix(p.rest, "'") {
		word := p.word()
		if word == "" {
			p.fail("a value is missing")
		}
		return word
	}
	var value strings.Builder
	for rest := p.rest[1:]; ; {
		inner, behind, closed := strings.Cut(rest, "'")
		value.WriteString(inner)
		if !closed {
			p.fail("a ' is not closed")
			return ""
		}
		if !strings.HasPrefix(behind, "'") {
			p.rest = behind
			return value.String()
		}
		value.WriteByte('\'')
		rest = behind[1:]
	}
}

// list takes values in parentheses.
func (p *parser) list() (values []string) {
	if !p.mark("(") {
		p.fail("a ( is missing")
	}
	for p.err == nil {
		values = append(values, p.value())
		if p.mark(")") {
			break
		}
		if !p.mark(",") {
			p.fail("a ) is missing")
		}
	}
	return values
}

func (p *parser) mark(text string) bool {
	p.skipBlanks()
	rest, found := strings.CutPrefix(p.rest, text)
	p.rest = rest
	return found
}
