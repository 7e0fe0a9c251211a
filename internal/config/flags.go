package config

import "strings"

// Flags is what the command line says about the configuration. What is empty says nothing.
type Flags struct {
	Cluster   string
	Resources []string // kubectl's names, each possibly several with commas between
	Sinks     []string // each file:///path, - or nats://host:4222?stream=NAME
	Format    string   // of every sink
	StateDir  string
	Listen    string
	LogLevel  string
	LogFormat string
}

// Overlay puts the flags over what a file says: a flag wins. Resources and Sinks replace the file's whole list, with
// the selectors, queues and names that are in it, so that what is given on the command line is all there is. Format
// goes to every sink. Default is called on the result.
func Overlay(c *Config, f Flags) error {
	problems := &Problems{Source: "command line"}
	c.replace("cluster", &c.Cluster, f.Cluster)
	c.replace("state.dir", &c.State.Dir, f.StateDir)
	c.replace("listen", &c.Listen, f.Listen)
	c.replace("log.level", &c.Log.Level, f.LogLevel)
	c.replace("log.format", &c.Log.Format, f.LogFormat)
	c.replaceResources(f.Resources)
	c.replaceSinks(f.Sinks, problems)
	for i := range c.Sinks {
		c.replace(item("sinks", i)+".format", &c.Sinks[i].Format, f.Format)
	}
	c.Default()
	problems.List = append(problems.List, f.check()...)
	return problems.err()
}

// check names the flag where Validate could name only the key that the flag replaced.
func (f Flags) check() []Problem {
	k := &checker{}
	if f.Format != "" {
		k.oneOf("--format", f.Format, Formats())
	}
	if f.LogLevel != "" {
		k.oneOf("--log-level", f.LogLevel, LogLevels())
	}
	if f.LogFormat != "" {
		k.oneOf("--log-format", f.LogFormat, LogFormats())
	}
	if f.Listen != "" && !isListenAddress(f.Listen) {
		k.problem("--listen", "want an address such as :8080 or 127.0.0.1:8080, have %q", shorten(f.Listen))
	}
	for _, name := range splitNames(f.Resources) {
		if err := CheckResource(name); err != nil {
			k.problem("--resources", "%v", err)
		}
	}
	return k.found
}

func (c *Config) replace(path string, into *string, value string) {
	if value != "" {
		*into = value
		c.origin.forget(path)
	}
}

func (c *Config) replaceResources(flags []string) {
	names := splitNames(flags)
	if len(names) == 0 {
		return
	}
	c.origin.forget("resources")
	c.Resources = make([]Resource, len(names))
	for i, name := range names {
		c.Resources[i].Name = name
	}
}

func splitNames(flags []string) []string {
	var names []string
	for _, flag := range flags {
		for name := range strings.SplitSeq(flag, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func (c *Config) replaceSinks(flags []string, problems *Problems) {
	if len(flags) == 0 {
		return
	}
	c.origin.forget("sinks")
	c.Sinks = nil
	for _, flag := range flags {
		sink, err := parseSink(flag)
		if err != nil {
			problems.add(Problem{"--sink " + withoutLogin(flag), 0, err.Error()})
			continue
		}
		c.Sinks = append(c.Sinks, sink)
	}
}
