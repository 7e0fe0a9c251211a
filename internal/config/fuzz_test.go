package config

import (
	"errors"
	"os"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, path := range []string{"testdata/design.yaml", "../../deploy/config.example.yaml"} {
		data, err := os.ReadFile(path)
		must(f, err)
		f.Add(data)
	}
	for _, text := range []string{
		"", "a: [", "? {a: b}\n: - c", "- &a [*a]", "<<: {cluster: a}\ncluster: b", "&a a: *a", "cluster: !!binary aGk=", "\t", "~: ~",
		"sinks: [{nats: {url: 'nats://u:p@h,i'}}]", "cluster: ${QUEUE}$${", "listen: |\n  a\n--- !!null [a]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("c.yaml", data, testEnv)
		if err == nil {
			// Only that something is missing is left to say.
			checkRest(t, c)
			return
		}
		var problems *Problems
		if !errors.As(err, &problems) || len(problems.List) == 0 || problems.Error() == "" {
			t.Errorf("have %v, want problems", err)
		}
	})
}

func checkRest(t *testing.T, c *Config) {
	var problems *Problems
	if err := c.Validate(); err == nil || !errors.As(err, &problems) {
		return
	}
	for _, problem := range problems.List {
		if problem.Path != "resources" && problem.Path != "sinks" {
			t.Errorf("Parse left out %v", problem)
		}
	}
}
