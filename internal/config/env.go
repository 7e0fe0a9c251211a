package config

import (
	"fmt"
	"strings"
)

// expand replaces each ${NAME} in text by what env says, and $${ by ${. What it puts in is not looked at again.
func expand(text string, env func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		if start > 0 && text[start-1] == '$' {
			b.WriteString(text[:start-1] + "${")
			text = text[start+2:]
			continue
		}
		value, rest, err := lookUp(text[start+2:], env)
		if err != nil {
			return "", err
		}
		b.WriteString(text[:start] + value)
		text = rest
	}
}

// lookUp takes text that begins after "${" and returns the variable's value and what follows the closing brace. Its
// errors show no more of text than a variable's name: the rest may be a secret.
func lookUp(text string, env func(string) (string, bool)) (value, rest string, err error) {
	name, rest, closed := strings.Cut(text, "}")
	switch {
	case !closed:
		return "", "", fmt.Errorf("${ without a closing }; write $${ for a plain ${")
	case !isVariable(name):
		return "", "", fmt.Errorf("${...} holds more than the name of a variable; write $${ for a plain ${")
	}
	value, found := env(name)
	if !found {
		return "", "", fmt.Errorf("environment variable %s is not set; set it, or write $${%s} for the plain text", name, name)
	}
	return value, rest, nil
}

func isVariable(name string) bool {
	return consistsOf(name, lower+upper+digits+"_") && !strings.Contains(digits, name[:1])
}
