package config

import (
	"errors"
	"fmt"
	"strings"
)

// syntaxes say what is wrong with a text, by the names that the tag like of a key has.
func syntaxes() map[string]func(text string) error {
	const words = lower + upper + digits + "-_"
	isBucket := func(text string) bool { return consistsOf(text, words) }
	isLog := func(text string) bool { return consistsOf(strings.ReplaceAll(text, clusterName, "x"), words) }
	isSink := func(text string) bool { return consistsOf(text, words+".") && strings.Trim(text, ".") != "" } // a directory's name, too
	isPath := func(text string) bool { return !strings.ContainsRune(text, 0) }
	return map[string]func(string) error{
		"address": unless(isListenAddress, "want an address such as :8080 or 127.0.0.1:8080, have %q"),
		"broker":  unless(isBroker, "want host:port, have %q"),
		"bucket":  unless(isBucket, "%q cannot be a bucket; want letters, digits and any of -_"),
		"stream":  unless(isStream, `%q cannot be a stream; leave out white space and any of .*>/\`),
		"log":     unless(isLog, "%q cannot be a name; want letters, digits, {cluster} and any of -_"),
		"sink":    unless(isSink, "%q cannot be a name; want letters, digits and any of -_., and more than dots"),
		"path":    unless(isPath, "%q cannot be a path: it holds a zero byte; leave that out"),
		"secret":  unless(isNamespaced, "%q is no Secret; want namespace/name, such as kubecdc/prod-eu1"),
		"lease": unless(isNamespaced, "%q is no Lease; want namespace/name, such as kubecdc/prod-eu1: "+
			"a namespace of at most 63 lower case letters, digits and -, and a name of at most 253, also with dots"),
		"namespace":     CheckNamespace,
		"resource":      CheckResource,
		"topic":         checkTopic,
		"subject":       checkSubject,
		"servers":       checkServers,
		"fixed topic":   fixed(checkTopic),
		"fixed subject": fixed(checkPrefix),
	}
}

// unless is the syntax of texts for which is is true.
func unless(is func(string) bool, message string) func(string) error {
	return func(text string) error {
		if is(text) {
			return nil
		}
		return fmt.Errorf(message, shorten(withoutLogin(text)))
	}
}

// fixed is the syntax of a topic or a subject that no record chooses, with {cluster} in it or without.
func fixed(check func(literal string) error) func(string) error {
	return func(text string) error {
		literal := strings.ReplaceAll(text, clusterName, "x")
		if strings.ContainsAny(literal, "{}") {
			return fmt.Errorf("%q: the only placeholder here is {cluster}", shorten(text))
		}
		return check(literal)
	}
}

// checkPrefix says what is wrong with a subject that others are below.
func checkPrefix(subject string) error {
	if strings.HasPrefix(subject, "$") {
		return errors.New("what begins with $ is the server's own; choose another subject")
	}
	return checkSubject(subject)
}

func checkServers(text string) error {
	if _, err := parseServers(text); err != nil {
		return fmt.Errorf("%w; have %q", err, withoutLogin(text))
	}
	return nil
}
