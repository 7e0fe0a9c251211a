package reference

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const head = `<!-- Made from the keys in internal/config by make docs. What they mean is in test/reference/sentences.yaml. -->

# Configuration

The exporter reads one YAML file: ` + "`exporter run -f FILE`" + `. Without a file, flags give the most important settings
(` + "`exporter run --help`" + `). A flag wins over the file. Only ` + "`resources` and `sinks`" + ` are needed.
[deploy/config.example.yaml](../deploy/config.example.yaml) shows every key once.

` + "`${NAME}`" + ` in a value is replaced by that environment variable after the YAML was read. ` + "`$${`" + ` stands for ` + "`${`" + `.
These are errors: a variable that is not set, an unknown key, a key that is given twice, and a value of the wrong type.
All errors are reported at once, each with its path and line.

| type | how it is written |
|---|---|
| size | bytes, or a number with one of Ki, Mi, Gi, Ti, k, M, G, T: ` + "`64Mi`" + `, ` + "`4096`" + ` |
| duration | as Go writes it: ` + "`10s`, `1h30m`" + ` |
| secret | a string that is never shown; give it as ` + "`${NAME}`" + ` |
| number, boolean | also in quotes, so that it can come from a variable |

The default – means that there is none. Then the sentence says what happens without the key.
`

// Markdown is the page.
func Markdown() []byte {
	keys := Keys()
	var b strings.Builder
	b.WriteString(head)
	section := "?"
	for _, key := range keys {
		if at := parent(key.Path); at != section {
			section = at
			heading(&b, section, keys)
		}
		row(&b, key)
	}
	return []byte(b.String())
}

// parent is the section that a key stands in, "" at the top.
func parent(path string) string {
	i := strings.LastIndex(path, ".")
	return path[:max(i, 0)]
}

func last(path string) string { return path[strings.LastIndex(path, ".")+1:] }

func heading(b *strings.Builder, section string, keys []Key) {
	title := "Top level"
	if section != "" {
		title = "`" + section + "`"
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, key := range keys {
		if key.Path == section {
			fmt.Fprintf(b, "%s\n\n", wrap(key.Text))
		}
	}
	b.WriteString("| key | type | default | |\n|---|---|---|---|\n")
}

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

func row(b *strings.Builder, key Key) {
	name, text, value := "`"+strings.TrimSuffix(last(key.Path), "[]")+"`", key.Text, "–"
	if key.Section {
		text = fmt.Sprintf("See [%s](#%s).", key.Path, anchor(key.Path))
	}
	if len(key.Allowed) > 0 {
		text += " Allowed: `" + strings.Join(key.Allowed, "`, `") + "`."
	}
	if key.Default != "" {
		value = "`" + key.Default + "`"
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, key.Type, value, strings.ReplaceAll(text, "|", `\|`))
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
