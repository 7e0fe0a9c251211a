package config

import (
	"fmt"
	"strings"
)

// checker collects what is wrong with values that are there.
type checker struct {
	origin origin
	found  []Problem
}

func (c *checker) problem(path, format string, args ...any) {
	c.found = append(c.found, Problem{path, c.origin.line(path), fmt.Sprintf(format, args...)})
}

func (c *checker) oneOf(path, value string, allowed []string) {
	if err := oneOf(value, allowed); err != nil {
		c.problem(path, "%v", err)
	}
}

func oneOf(value string, allowed []string) error {
	for _, a := range allowed {
		if a == value {
			return nil
		}
	}
	return fmt.Errorf("unknown value %q; allowed: %s", shorten(value), strings.Join(allowed, ", "))
}
