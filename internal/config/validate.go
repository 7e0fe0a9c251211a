package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

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

func (c *Config) check() []Problem {
	k := &checker{origin: c.origin}
	if strings.TrimFunc(c.Cluster, isBlank) != c.Cluster {
		k.problem("cluster", "%q begins or ends with white space; leave it out", c.Cluster)
	}
	k.listen(c.Listen)
	k.oneOf("log.level", c.Log.Level, LogLevels())
	k.oneOf("log.format", c.Log.Format, LogFormats())
	k.discovery(&c.Discovery)
	k.resources(c.Resources)
	for i := range c.Sinks {
		k.sink(item("sinks", i), &c.Sinks[i], c.Resources)
	}
	k.sinkNames(c)
	return k.found
}

func (k *checker) problem(path, format string, args ...any) {
	k.found = append(k.found, Problem{path, k.origin.line(path), fmt.Sprintf(format, args...)})
}

func (k *checker) oneOf(path, value string, allowed []string) {
	if err := oneOf(value, allowed); err != nil {
		k.problem(path, "%v", err)
	}
}

func oneOf(value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("unknown value %q; allowed: %s", shorten(value), strings.Join(allowed, ", "))
}

func (k *checker) listen(address string) {
	if !isListenAddress(address) {
		k.problem("listen", "want an address such as :8080 or 127.0.0.1:8080, have %q", shorten(address))
	}
}

func isListenAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

func (k *checker) resources(resources []Resource) {
	first := make(map[string]string)
	for i, r := range resources {
		path := item("resources", i)
		if err := CheckResource(r.Name); err != nil {
			k.problem(path, "%v", err)
		} else if before := first[r.Name]; before != "" {
			// Two streams of one resource would share their saved position.
			k.problem(path, "%s is named already in %s; list all its namespaces there", r.Name, before)
		} else {
			first[r.Name] = path
		}
		for j, op := range r.Ops {
			k.oneOf(item(path+".ops", j), op, Ops())
		}
		if r.FilterFailure != "" {
			k.oneOf(path+".filterFailure", r.FilterFailure, FilterFailures())
			if r.Filter == "" {
				k.problem(path+".filterFailure", "there is no filter that could fail; add filter, or leave it out")
			}
		}
		for j, kept := range r.Keep {
			k.oneOf(item(path+".keep", j), kept, Keepables())
		}
		k.namespaces(path+".namespaces", r.Namespaces)
		k.exclusions(path, &r)
	}
}

func (k *checker) namespaces(path string, namespaces []string) {
	for j, namespace := range namespaces {
		if err := CheckNamespace(namespace); err != nil {
			k.problem(item(path, j), "%v", err)
		}
	}
}

// CheckNamespace takes what a namespace may be called. Whether it is there is not known here.
func CheckNamespace(name string) error {
	if !consistsOf(name, lower+digits+"-") {
		return fmt.Errorf("%q cannot be a namespace; want lower case letters, digits and -", shorten(name))
	}
	return nil
}

// CheckResource takes what kubectl takes: pods, deployments.apps, deployments.v1.apps, and with * for every name,
// *.apps and *. Whether it is served is not known here.
func CheckResource(name string) error {
	plural, group, grouped := strings.Cut(name, ".")
	if plural != "*" && !consistsOf(plural, lower+digits+"-") || grouped && !isGroup(group) {
		return fmt.Errorf("%q cannot be a resource; write it as kubectl does: pods, deployments.apps, *.cert-manager.io or *", shorten(name))
	}
	return nil
}

func isGroup(group string) bool {
	return consistsOf(group, lower+digits+"-.") && !slices.Contains(strings.Split(group, "."), "")
}
