package config

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"slices"
)

// Load reads the file at path. env looks up the variables that its values name; os.LookupEnv is one.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &Problems{Source: origin{file: path}.source(), List: []Problem{{Text: "read the file: " + cause(err) + "; correct the path that --config gives, or the rights of the file"}}}
	}
	return Parse(path, data, env)
}

// cause leaves out the path, which the message has already.
func cause(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

// Parse reads the content of a file, calls Default, and checks each value that is there. That something has to be
// there at all is for Validate to say, since flags may still bring it. name is what messages call the file.
//
// A value, not a key, may hold ${NAME}, which is replaced by the variable's value after the YAML was read, so that no
// value can be taken for YAML; $${ stands for ${.
func Parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	c := &Config{origin: origin{file: name, lines: make(map[string]int)}}
	problems := &Problems{Source: c.origin.source()}
	root, problem := readTree(data)
	if problem != nil {
		problems.add(*problem)
		return nil, problems
	}
	d := decoder{env: env, origin: c.origin, problems: problems, settled: make(map[string]bool)}
	d.section("", root, reflect.ValueOf(c).Elem())
	c.Default()
	problems.List = append(problems.List, d.withoutFollowUps(c.check())...)
	if err := problems.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// withoutFollowUps leaves out what is wrong only because a value could not be read.
func (d *decoder) withoutFollowUps(found []Problem) []Problem {
	return slices.DeleteFunc(found, func(p Problem) bool { return d.settled[p.Path] })
}
