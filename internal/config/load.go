package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
)

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
	k := &checker{}
	c.replace("cluster", &c.Cluster, f.Cluster)
	c.replace("state.dir", &c.State.Dir, f.StateDir)
	c.replace("listen", &c.Listen, f.Listen)
	c.replace("log.level", &c.Log.Level, f.LogLevel)
	c.replace("log.format", &c.Log.Format, f.LogFormat)
	if names := splitNames(f.Resources); len(names) > 0 {
		c.origin.forget("resources")
		c.Resources = make([]Resource, len(names))
		for i, name := range names {
			c.Resources[i].Name = name
		}
	}
	if len(f.Sinks) > 0 {
		c.origin.forget("sinks")
		c.Sinks = nil
	}
	for _, flag := range f.Sinks {
		sink, err := parseSink(flag)
		if k.wrong("--sink "+withoutLogin(flag), err); err == nil {
			c.Sinks = append(c.Sinks, sink)
		}
	}
	for i := range c.Sinks {
		c.replace(item("sinks", i)+".format", &c.Sinks[i].Format, f.Format)
	}
	c.Default()
	f.check(k)
	return k.problems("command line")
}

// check names the flag where Validate could name only the key that the flag replaced.
func (f Flags) check(k *checker) {
	check := func(flag, value string, check func(string) error) {
		if value != "" {
			k.wrong(flag, check(value))
		}
	}
	check("--format", f.Format, among(Formats()))
	check("--log-level", f.LogLevel, among(LogLevels()))
	check("--log-format", f.LogFormat, among(LogFormats()))
	check("--listen", f.Listen, syntaxes()["address"])
	for _, name := range splitNames(f.Resources) {
		k.wrong("--resources", CheckResource(name))
	}
}

func (c *Config) replace(path string, into *string, value string) {
	if value != "" {
		*into = value
		c.origin.forget(path)
	}
}

func splitNames(flags []string) []string {
	return strings.FieldsFunc(strings.Join(flags, ","), func(r rune) bool { return r == ',' || r == ' ' })
}

// Load reads the file at path. env looks up the variables that its values name; os.LookupEnv is one.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if pathError, is := errors.AsType[*fs.PathError](err); is {
			err = pathError.Err // without the path, which the message has already
		}
		return nil, &Problems{Source: origin{file: path}.source(), List: []Problem{{Text: "read the file: " + err.Error() + "; correct the path that --config gives, or the rights of the file"}}}
	}
	return Parse(path, data, env)
}

// Parse reads the content of a file, calls Default, and checks each value that is there. That something has to be
// there at all is for Validate to say, since flags may still bring it. name is what messages call the file.
//
// A value, not a key, may hold ${NAME}, which is replaced by the variable's value after the YAML was read, so that no
// value can be taken for YAML; $${ stands for ${.
func Parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	c := &Config{origin: origin{file: name, lines: make(map[string]int)}}
	d := decoder{checker: &checker{origin: c.origin, settled: map[string]bool{}}, env: env}
	root, problem := readTree(data)
	if problem != nil {
		d.add(*problem)
		return nil, d.problems(c.origin.source())
	}
	d.section("", root, reflect.ValueOf(c).Elem())
	c.Default()
	c.check(d.checker)
	if err := d.problems(c.origin.source()); err != nil {
		return nil, err
	}
	return c, nil
}

const sinkForms = "file:///path/out.ndjson, - (standard output), kafka://host:9092,host:9092, nats://host:4222?stream=NAME or tls://host:4222?stream=NAME"

// parseSink reads a sink from its short form. Each may say ?name=, for two sinks of one kind; standard output is
// -?name=out.
func parseSink(text string) (Sink, error) {
	place, query, _ := strings.Cut(text, "?")
	scheme, rest, found := strings.Cut(place, "://")
	parse, allowed := parseFileSink, []string{"name"}
	switch {
	case place == stdout:
		parse = func(string, url.Values) (Sink, error) { return Sink{File: &File{Path: stdout}}, nil }
	case !found:
		return Sink{}, errors.New("want " + sinkForms)
	case scheme == "file":
	case scheme == "kafka":
		parse, allowed = parseKafkaSink, append(allowed, "topic", "delivery")
	case slices.Contains(schemes(), scheme):
		parse, rest, allowed = parseNATSSink, place, append(allowed, "stream")
	default:
		return Sink{}, fmt.Errorf("this build has no sink of kind %q; want %s", shorten(scheme), sinkForms)
	}
	values, err := parseQuery(query, allowed)
	if err != nil {
		return Sink{}, err
	}
	sink, err := parse(rest, values)
	sink.Name = values.Get("name")
	return sink, err
}

func parseFileSink(path string, _ url.Values) (Sink, error) {
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return Sink{}, errors.New("want the whole path of a file after three slashes, as in file:///path/out.ndjson")
	}
	path, err := url.PathUnescape(path)
	if err != nil {
		return Sink{}, errors.New("want %25 for a % in a path")
	}
	return Sink{File: &File{Path: path}}, nil
}

// parseKafkaSink reads brokers and perhaps a topic. A login has no place in a command line: it is in a file.
func parseKafkaSink(brokers string, values url.Values) (Sink, error) {
	k := &Kafka{Topic: values.Get("topic"), Delivery: values.Get("delivery")}
	for broker := range strings.SplitSeq(brokers, ",") {
		broker = strings.TrimSpace(broker)
		if !isBroker(broker) {
			return Sink{}, errors.New("want brokers such as kafka://host:9092,host:9092; put a login into a configuration file")
		}
		k.Brokers = append(k.Brokers, broker)
	}
	return Sink{Kafka: k}, nil
}

func parseNATSSink(servers string, values url.Values) (Sink, error) {
	if _, err := parseServers(servers); err != nil {
		return Sink{}, err
	}
	stream := values.Get("stream")
	if err := syntaxes()["stream"](stream); err != nil && stream != "" {
		return Sink{}, err
	}
	n := &NATS{URL: servers, Stream: stream}
	return Sink{NATS: n}, n.takeLogin()
}

func parseQuery(query string, allowed []string) (url.Values, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		// The text may hold a password with a ? in it.
		return nil, errors.New("want special characters as %XX after the ?")
	}
	for key, given := range values {
		if !slices.Contains(allowed, key) {
			return nil, fmt.Errorf("unknown parameter after the ?; allowed: %s", join(allowed))
		}
		if len(given) > 1 {
			return nil, fmt.Errorf("%s is given %d times after the ?; leave one", key, len(given))
		}
	}
	return values, nil
}
