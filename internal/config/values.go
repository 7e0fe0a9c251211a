package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
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
	var unknown error
	literal := regexp.MustCompile(`\{[^{}]*\}`).ReplaceAllStringFunc(template, func(found string) string {
		of, label, isLabel := strings.Cut(strings.Trim(found, "{}"), ":")
		isLabel = isLabel && (of+":" == labelPrefix || of+":" == namespaceLabelPrefix) && consistsOf(label, lower+upper+digits+"-_./")
		if !isLabel && found != "{"+of+"}" || !isLabel && !slices.Contains(placeholders(), of) {
			unknown = cmp.Or(unknown, fmt.Errorf("unknown placeholder %s; allowed: {%s}, {label:KEY}, {namespaceLabel:KEY}",
				shorten(found), strings.Join(placeholders(), "}, {")))
		}
		return "x"
	})
	switch {
	case unknown != nil:
		return "", unknown
	case strings.Contains(literal, "{"):
		return "", errors.New("a { without its }")
	case strings.Contains(literal, "}"):
		return "", errors.New("a } without its {")
	}
	return literal, nil
}

// labelPrefix begins a placeholder that is a label of the object, such as {label:app.kubernetes.io/name},
// namespaceLabelPrefix one that is a label of its namespace.
const (
	labelPrefix          = "label:"
	namespaceLabelPrefix = "namespaceLabel:"
)

// hasLabel says whether a template, or one of some resources, has a label in it, so that one object's records go to
// several places over time.
func hasLabel(template string, others map[string]string) bool {
	for _, other := range others {
		template += other
	}
	return strings.Contains(template, "{"+labelPrefix) || strings.Contains(template, "{"+namespaceLabelPrefix)
}

// AsksNamespace says whether a filter may look at the object's namespace.
func AsksNamespace(filter string) bool { return strings.Contains(filter, "namespaceObject") }

// ourHeaders are what names of the exporter's own headers, and of the servers', begin with.
func ourHeaders() []string { return []string{"kubecdc-", "ce_", "ce-", "nats-", "kv-", "content-type"} }

// checkHeaders checks templates of headers by their names.
func checkHeaders(k *checker, path string, headers map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at := under(path, name)
		k.problemIf(!consistsOf(name, lower+upper+digits+"-_."), at,
			"%q cannot be a header; want letters, digits and any of -_.", shorten(name))
		k.problemIf(slices.ContainsFunc(ourHeaders(), func(ours string) bool { return strings.HasPrefix(strings.ToLower(name), ours) }), at,
			"the exporter or the server has headers of such names; do not begin with any of %s", strings.Join(ourHeaders(), ", "))
		literal, err := withoutPlaceholders(headers[name])
		k.wrong(at, err)
		k.problemIf(strings.ContainsFunc(literal, unicode.IsControl), at, "control characters cannot be part of a header; leave them out")
	}
}

// parseServers reads a comma separated list of NATS servers. A server without a scheme has the first one's. Errors do
// not quote the text, and not the cause either: both may hold a password.
func parseServers(text string) ([]*url.URL, error) {
	scheme, _, found := strings.Cut(text, "://")
	if !found || !slices.Contains(schemes(), scheme) {
		return nil, fmt.Errorf("want a URL that begins with one of %s://", strings.Join(schemes(), "://, "))
	}
	var servers []*url.URL
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		if !strings.Contains(one, "://") {
			one = scheme + "://" + one
		}
		server, err := parseServer(one)
		if err != nil {
			return nil, err
		}
		servers = append(servers, server)
	}
	return servers, nil
}

func parseServer(text string) (*url.URL, error) {
	server, err := url.Parse(text)
	switch {
	case err != nil || server.Hostname() == "":
		return nil, errors.New("want servers such as nats://host:4222, in user and password special characters as %XX")
	case !slices.Contains(schemes(), server.Scheme):
		return nil, fmt.Errorf("want each server to begin with one of %s://", strings.Join(schemes(), "://, "))
	case strings.Trim(server.Path, "/") != "" || server.RawQuery != "" || server.Fragment != "":
		return nil, errors.New("want nothing after a server's port; stream and name have keys of their own")
	}
	return server, nil
}

// cutLogin takes the login out of the servers, of which any number may hold it; nil where none does.
func cutLogin(servers []*url.URL) (*url.Userinfo, error) {
	var login *url.Userinfo
	for _, server := range servers {
		if server.User == nil {
			continue
		}
		if login != nil && *login != *server.User {
			return nil, errors.New("servers have different logins; one sink logs in one way")
		}
		login, server.User = server.User, nil
	}
	return login, nil
}

// withoutLogin hides what stands between a URL's scheme and its last @, also where that is no valid login.
func withoutLogin(text string) string {
	start, end := 0, strings.LastIndex(text, "@")
	if scheme := strings.Index(text, "://"); scheme >= 0 {
		start = scheme + len("://")
	}
	if end < start {
		return text
	}
	return text[:start] + masked + text[end:]
}

// origin is where a configuration's values were written.
type origin struct {
	file  string
	lines map[string]int // by path
}

func (o origin) source() string {
	if o.file == "" {
		return "configuration"
	}
	return "configuration " + o.file
}

// line finds the line of a path, or of the nearest thing around it: what is missing has no line of its own.
func (o origin) line(path string) int {
	for path != "" {
		if line := o.lines[path]; line != 0 {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 0
}

// forget is for a value that no longer is the file's.
func (o origin) forget(path string) {
	maps.DeleteFunc(o.lines, func(p string, _ int) bool {
		rest, under := strings.CutPrefix(p, path)
		return under && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// checker collects what is wrong with a configuration.
type checker struct {
	origin  origin
	found   []Problem
	settled map[string]bool // paths of which enough is said: what else is wrong there follows from that
}

func (c *checker) problem(path, format string, args ...any) {
	if !c.settled[path] {
		c.found = append(c.found, Problem{path, c.origin.line(path), fmt.Sprintf(format, args...)})
	}
}

// problems is the error of a finished search: nil where nothing was found.
func (c *checker) problems(source string) error {
	if len(c.found) == 0 {
		return nil
	}
	// Problems of unknown line, which are mostly about something missing, come last.
	order := func(p Problem) int { return cmp.Or(p.Line, math.MaxInt) }
	slices.SortStableFunc(c.found, func(a, b Problem) int { return cmp.Compare(order(a), order(b)) })
	return &Problems{Source: source, List: c.found}
}

// problemIf says what is wrong where it is.
func (c *checker) problemIf(is bool, path, format string, args ...any) {
	if is {
		c.problem(path, format, args...)
	}
}

// wrong says what is wrong with a value, if anything is.
func (c *checker) wrong(path string, err error) {
	c.problemIf(err != nil, path, "%v", err)
}

// among is the syntax of a value of which these are allowed.
func among(allowed []string) func(value string) error {
	return func(value string) error {
		if slices.Contains(allowed, value) {
			return nil
		}
		return fmt.Errorf("unknown value %q; allowed: %s", shorten(value), strings.Join(allowed, ", "))
	}
}
