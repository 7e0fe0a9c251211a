package reference

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const head = `<!-- Made from the keys in internal/config by make docs. What they mean is in test/reference/sentences.yaml. -->

# Configuration

` + "`exporter run -f FILE`" + ` reads one YAML file. Without one, flags give the main settings
(` + "`exporter run --help`" + `); a flag wins over the file. Only ` + "`resources` and `sinks`" + ` are needed.
[deploy/config.example.yaml](../deploy/config.example.yaml) shows every key once.

` + "`${NAME}`" + ` in a value stands for that environment variable, and ` + "`$${` for `${`" + `. An unset variable, an unknown key,
a duplicate key and a value of the wrong type are errors. All are reported at once, each with its path and line.

| type | how it is written |
|---|---|
| size | bytes, or a number with Ki, Mi, Gi, Ti, k, M, G, T: ` + "`64Mi`" + ` |
| duration | as Go writes it: ` + "`10s`, `1h30m`" + ` |
| secret | a string that is never shown; give it as ` + "`${NAME}`" + ` |
| mapping | keys: ` + "`ha.lease`" + ` is ` + "`ha: {lease: ...}`" + ` |
| number, boolean | also in quotes, for a variable; a boolean is ` + "`false`" + ` unless ` + "**`true`**" + ` is bold |
`

// Markdown is the page.
func Markdown() []byte {
	p := newPage()
	p.WriteString(head)
	p.section("", "")
	return []byte(p.String())
}

// page is written section by section.
type page struct {
	strings.Builder
	keys  []Key
	first map[string]string // the section that shows a type's keys, by the type
}

func newPage() *page {
	p := &page{keys: Keys(), first: map[string]string{}}
	for _, key := range p.keys {
		if _, known := p.first[key.Owner]; !known {
			p.first[key.Owner] = parent(key.Path)
		}
	}
	return p
}

// below are the keys of a section.
func (p *page) below(section string) (all []Key) {
	for _, key := range p.keys {
		if parent(key.Path) == section {
			all = append(all, key)
		}
	}
	return all
}

// own are those of the section that no earlier one shows, and elsewhere says where the others are.
func (p *page) own(section string) (own []Key, elsewhere string) {
	var names []string
	at := ""
	for _, key := range p.below(section) {
		if first := p.first[key.Owner]; first != section {
			names, at = append(names, "`"+last(key.Path)+"`"), first
		} else {
			own = append(own, key)
		}
	}
	if len(names) > 0 {
		elsewhere = fmt.Sprintf("%s as in [%s](#%s).", strings.Join(names, ", "), at, anchor(p.home(at)))
	}
	return own, elsewhere
}

// few is how many keys are shown among those of the section above.
const few = 2

// home is the section whose table has the section's keys.
func (p *page) home(section string) string {
	own, _ := p.own(section)
	if section == "" || len(own) > few || strings.HasSuffix(section, "[]") {
		return section
	}
	return p.home(parent(section))
}

// section writes the table of a section, and then those of the larger sections in it.
func (p *page) section(path, text string) {
	title := "Top level"
	if path != "" {
		title = "`" + path + "`"
	}
	fmt.Fprintf(p, "\n## %s\n\n", title)
	if text != "" {
		fmt.Fprintf(p, "%s\n\n", wrap(text))
	}
	p.WriteString("| key | type, **default** | |\n|---|---|---|\n")
	for _, key := range p.rows(path, "") {
		p.section(key.Path, key.Text)
	}
}

// rows writes those of a section's keys, with the prefix, and returns the sections that are not among them.
func (p *page) rows(section, prefix string) (larger []Key) {
	own, _ := p.own(section)
	for _, key := range own {
		name := prefix + strings.TrimSuffix(last(key.Path), "[]")
		switch {
		case !key.Section:
			p.row(name, &key)
		case p.home(key.Path) == key.Path:
			larger = append(larger, key)
			p.cells(name, fmt.Sprintf("[%s](#%s)", key.Type, anchor(key.Path)), "")
		default:
			// Its keys say the rest, unless its sentence names another key or page.
			if _, elsewhere := p.own(key.Path); strings.ContainsAny(key.Text+elsewhere, "`[") {
				p.cells(name, key.Type, key.Text+" "+elsewhere)
			}
			larger = append(larger, p.rows(key.Path, name+".")...)
		}
	}
	return larger
}

// parent is the section that a key stands in, "" at the top.
func parent(path string) string {
	i := strings.LastIndex(path, ".")
	return path[:max(i, 0)]
}

func last(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// columns are those of a screen.
const columns = 120

// wrap breaks prose into lines that a screen shows.
func wrap(text string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > columns {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n")
}

// row has the default in bold, among the allowed values where there are some. That of a boolean is false.
func (p *page) row(name string, key *Key) {
	text, value := absence(key.Text)
	kinds := []string{key.Type}
	if len(key.Allowed) > 0 {
		kinds = nil
	}
	for _, allowed := range key.Allowed {
		if kind := "`" + allowed + "`"; allowed == key.Default || kind == value {
			kinds, value = append(kinds, "**"+kind+"**"), ""
		} else {
			kinds = append(kinds, kind)
		}
	}
	switch {
	case value == needed:
		kinds = append(kinds, needed)
	case value != "":
		kinds = append(kinds, "**"+value+"**")
	case key.Default != "" && key.Default != "false" && len(key.Allowed) == 0:
		kinds = append(kinds, "**`"+key.Default+"`**")
	}
	kind := strings.Join(kinds, ", ")
	if len(key.Allowed) > 0 && key.Type == "strings" {
		kind = "list of " + kind
	}
	p.cells(name, kind, text)
}

func (p *page) cells(name string, others ...string) {
	p.WriteString("| `" + name + "` |")
	for _, cell := range others {
		if cell = strings.ReplaceAll(strings.TrimSpace(cell), "|", `\|`); cell != "" {
			p.WriteString(" " + cell)
		}
		p.WriteString(" |")
	}
	p.WriteString("\n")
}

const needed = "needed"

// absence takes from a sentence what it says of a key that is not there, which is its default.
func absence(sentence string) (text, value string) {
	if text, found := strings.CutPrefix(sentence, "Needed."); found {
		return text, needed
	}
	text, value, _ = strings.Cut(sentence, "Without it, ")
	return text, strings.TrimSuffix(value, ".")
}

// anchor is the heading's name in the way of GitHub: lower case, and nothing but letters, digits, - and _.
func anchor(path string) string {
	keep := func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}
	return strings.Map(keep, strings.ToLower(path))
}
