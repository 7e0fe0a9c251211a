package config

import "fmt"

// Validate says everything that is wrong with the whole configuration, as *Problems. It is meant to be called when
// file and flags are in. It asks no file system, broker or API server.
func (c *Config) Validate() error {
	problems := &Problems{Source: c.origin.source(), List: c.check()}
	if len(c.Resources) == 0 {
		problems.add(Problem{"resources", 0, "none; name what to watch here or with --resources, such as pods,deployments.apps"})
	}
	if len(c.Sinks) == 0 {
		problems.add(Problem{"sinks", 0, "none; say where changes go here or with --sink, such as --sink -"})
	}
	return problems.err()
}

// checker collects what is wrong with values that are there.
type checker struct {
	origin origin
	found  []Problem
}

func (k *checker) problem(path, format string, args ...any) {
	k.found = append(k.found, Problem{path, k.origin.line(path), fmt.Sprintf(format, args...)})
}

func (k *checker) oneOf(path, value string, allowed []string) {
	if err := oneOf(value, allowed); err != nil {
		k.problem(path, "%v", err)
	}
}
