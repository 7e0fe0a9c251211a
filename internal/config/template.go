package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// checkSubject says what is wrong with the template of a subject. A placeholder becomes one token, never an empty one
// and never one with a dot, so a template has the tokens of every subject made of it.
func checkSubject(template string) error {
	literal, err := withoutPlaceholders(template)
	if err != nil {
		return err
	}
	if strings.ContainsFunc(literal, isBlank) || strings.ContainsAny(literal, "*>") {
		return errors.New("white space, * and > cannot be part of a subject that is published to")
	}
	if slices.Contains(strings.Split(literal, "."), "") {
		return errors.New("a token is empty; leave no dot at either end, and not two in a row")
	}
	return nil
}

// checkTopic says what is wrong with the template of a topic.
func checkTopic(template string) error {
	literal, err := withoutPlaceholders(template)
	if err != nil {
		return err
	}
	if !consistsOf(literal, lower+upper+digits+"-_.") {
		return errors.New("a topic has letters, digits and any of -_. only")
	}
	if literal == "." || literal == ".." {
		return errors.New("dots alone are no topic")
	}
	return nil
}

// withoutPlaceholders puts a letter in the place of each {placeholder}.
func withoutPlaceholders(template string) (string, error) {
	var b strings.Builder
	for template != "" {
		text, rest, found := strings.Cut(template, "{")
		if strings.Contains(text, "}") {
			return "", errors.New("a } without its {")
		}
		b.WriteString(text)
		if !found {
			break
		}
		name, rest, closed := strings.Cut(rest, "}")
		if !closed {
			return "", errors.New("a { without its }")
		}
		if !slices.Contains(placeholders(), name) && !isLabel(name) {
			return "", fmt.Errorf("unknown placeholder {%s}; allowed: {%s}, {label:KEY}", shorten(name), strings.Join(placeholders(), "}, {"))
		}
		b.WriteString("x")
		template = rest
	}
	return b.String(), nil
}

// labelPrefix begins a placeholder that is a label of the object, such as {label:app.kubernetes.io/name}.
const labelPrefix = "label:"

func isLabel(placeholder string) bool {
	key, found := strings.CutPrefix(placeholder, labelPrefix)
	return found && consistsOf(key, lower+upper+digits+"-_./")
}

// hasLabel says whether a template has a label in it, so that one object's records go to several places over time.
func hasLabel(template string) bool { return strings.Contains(template, "{"+labelPrefix) }

// routes are the templates of the places that a destination writes to. The zero value is one place without a template.
type routes struct {
	key    string            // of own
	own    map[string]string // of resources, by their spelling
	common string            // of all others
}
