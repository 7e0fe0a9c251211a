package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/script"
)

const file = `cluster: file
resources: [pods, {resource: secrets, namespaces: [a]}]
sinks:
- {name: bus, nats: {url: 'nats://h'}, resources: [secrets]}
- {name: out, file: {path: /f}}
state: {dir: /file}
log: {level: warn}
`

func TestNoFlagsChangeNothing(t *testing.T) {
	c, want := parse(t, file), parse(t, file)
	must(t, Overlay(c, Flags{}))
	if !reflect.DeepEqual(c, want) {
		t.Errorf("have %+v, want %+v", c, want)
	}
}

func TestFlagsWin(t *testing.T) {
	c := parse(t, file)
	err := Overlay(c, Flags{
		Cluster:   "flag",
		Resources: []string{"pods,jobs.batch", " *.cert-manager.io "},
		Sinks:     []string{"-", "file:///tmp/a%20b.ndjson", "file:///tmp/c?name=c", "tls://u:p@h:4222?stream=S&name=bus"},
		Format:    "cloudevents", StateDir: "/flag", Listen: "127.0.0.1:0", LogLevel: "debug", LogFormat: "json",
	})
	must(t, err)
	must(t, c.Validate())
	same(t, c, "testdata/flags.golden")
	if n := c.Sinks[3].NATS; n.Password != "p" {
		t.Errorf("password: have %q", n.Password.Reveal())
	}
}

// TestASinkOfFlagsAloneHasAName: that of its kind, or the one that it is given.
func TestASinkOfFlagsAloneHasAName(t *testing.T) {
	for flag, want := range map[string]string{"-": "stdout", "-?name=screen": "screen", "-?": "stdout", "nats://h": "nats"} {
		c := new(Config)
		must(t, Overlay(c, Flags{Resources: []string{"pods"}, Sinks: []string{flag}}))
		isNATS := want == KindNATS && c.Sinks[0].NATS.Stream == "K8S_{cluster}"
		err := c.Validate()
		if err != nil || c.Sinks[0].Name != want || !isNATS && c.Sinks[0].Kind() != KindStdout || c.State.Dir != "/var/lib/kubecdc" {
			t.Errorf("%s: have %+v, %v", flag, c.Sinks[0], err)
		}
	}
}

// What flags replaced has no line in the file, and a sink of the file may now want what is not watched.
func TestValidateAfterFlags(t *testing.T) {
	c := parse(t, file)
	must(t, Overlay(c, Flags{Resources: []string{"pods,pods"}}))
	wantError(t, c.Validate(), `configuration c.yaml: 2 problems:
  sinks[0].resources[0] (line 4): "secrets" is not watched; write it as in resources: pods
  resources[1]: pods is named already in resources[0]; list all its namespaces there, or put this one first`)
	c = parse(t, file)
	must(t, Overlay(c, Flags{Sinks: []string{"-", "-"}}))
	wantError(t, c.Validate(), `configuration c.yaml: 2 problems:
  sinks[0].name: missing; 2 sinks of kind stdout have none, give each a name
  sinks[1].name: missing; 2 sinks of kind stdout have none, give each a name`)
}

// TestSinkFlagsAreWorded: what is wrong with each, which shows no secret (I9).
func TestSinkFlagsAreWorded(t *testing.T) {
	script.Run(t, "testdata/sinks.txt", func(text string) string {
		err := Overlay(new(Config), Flags{Sinks: []string{strings.TrimSuffix(text, "\n")}})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", text, err)
		}
		return fmt.Sprint(err)
	})
}

func TestAllFlagProblems(t *testing.T) {
	err := Overlay(new(Config), Flags{
		Resources: []string{"Pods"}, Sinks: []string{"kafka://u:p@h"}, Format: "avro", Listen: "8080", LogLevel: "loud", LogFormat: "xml",
	})
	wantError(t, err, `command line: 6 problems:
  --sink kafka://***@h: want brokers such as kafka://host:9092,host:9092; put a login into a configuration file
  --format: unknown value "avro"; allowed: `+strings.Join(Formats(), ", ")+`
  --log-level: unknown value "loud"; allowed: debug, info, warn, error
  --log-format: unknown value "xml"; allowed: text, json
  --listen: want an address such as :8080 or 127.0.0.1:8080, have "8080"
  --resources: "Pods" cannot be a resource; write it as kubectl does: pods, deployments.apps, *.cert-manager.io or *`)
}
