package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

const sinkForms = "file:///path/out.ndjson, - (standard output), kafka://host:9092,host:9092, nats://host:4222?stream=NAME or tls://host:4222?stream=NAME"

// parseSink reads a sink from its short form. Each may say ?name=, for two sinks of one kind; standard output is
// -?name=out.
func parseSink(text string) (Sink, error) {
	if query, isStdout := strings.CutPrefix(text, stdout); isStdout && (query == "" || query[0] == '?') {
		return parseStdoutSink(strings.TrimPrefix(query, "?"))
	}
	scheme, rest, found := strings.Cut(text, "://")
	switch {
	case !found:
		return Sink{}, errors.New("want " + sinkForms)
	case scheme == "file":
		return parseFileSink(rest)
	case scheme == "kafka":
		return parseKafkaSink(rest)
	case slices.Contains(schemes(), scheme):
		return parseNATSSink(text)
	}
	return Sink{}, fmt.Errorf("this build has no sink of kind %q; want %s", shorten(scheme), sinkForms)
}

func parseStdoutSink(query string) (Sink, error) {
	values, err := parseQuery(query, "name")
	return Sink{Name: values.Get("name"), File: &File{Path: stdout}}, err
}

func parseFileSink(rest string) (Sink, error) {
	path, query, _ := strings.Cut(rest, "?")
	values, err := parseQuery(query, "name")
	if err != nil {
		return Sink{}, err
	}
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return Sink{}, errors.New("want the whole path of a file after three slashes, as in file:///path/out.ndjson")
	}
	if path, err = url.PathUnescape(path); err != nil {
		return Sink{}, errors.New("want %25 for a % in a path")
	}
	return Sink{Name: values.Get("name"), File: &File{Path: path}}, nil
}

// parseKafkaSink reads brokers and perhaps a topic. A login has no place in a command line: it is in a file.
func parseKafkaSink(rest string) (Sink, error) {
	brokers, query, _ := strings.Cut(rest, "?")
	values, err := parseQuery(query, "name", "topic", "delivery")
	if err != nil {
		return Sink{}, err
	}
	k := &Kafka{Topic: values.Get("topic"), Delivery: values.Get("delivery")}
	for broker := range strings.SplitSeq(brokers, ",") {
		broker = strings.TrimSpace(broker)
		if !isBroker(broker) {
			return Sink{}, errors.New("want brokers such as kafka://host:9092,host:9092; put a login into a configuration file")
		}
		k.Brokers = append(k.Brokers, broker)
	}
	return Sink{Name: values.Get("name"), Kafka: k}, nil
}

func parseNATSSink(text string) (Sink, error) {
	servers, query, _ := strings.Cut(text, "?")
	values, err := parseQuery(query, "name", "stream")
	if err != nil {
		return Sink{}, err
	}
	if _, err := parseServers(servers); err != nil {
		return Sink{}, err
	}
	stream := values.Get("stream")
	if stream != "" && !isStream(stream) {
		return Sink{}, fmt.Errorf("%q cannot be a stream; leave out white space and any of .*>/\\", shorten(stream))
	}
	n := &NATS{URL: servers, Stream: stream}
	return Sink{Name: values.Get("name"), NATS: n}, n.takeLogin()
}

func parseQuery(query string, allowed ...string) (url.Values, error) {
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
