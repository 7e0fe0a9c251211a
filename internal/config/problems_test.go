package config

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/script"
)

// TestProblemsAreWorded: what is wrong with each configuration, which shows no secret (I9).
func TestProblemsAreWorded(t *testing.T) {
	script.Run(t, "testdata/problems.txt", func(text string) string {
		_, err := Parse("c.yaml", []byte(text), testEnv)
		if err == nil {
			return "taken"
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
		return strings.TrimPrefix(err.Error(), "configuration c.yaml: ")
	})
}

func TestValidateMissesWhatIsNeeded(t *testing.T) {
	want := `configuration: 2 problems:
  resources: none; name what to watch here or with --resources, such as pods,deployments.apps
  sinks: none; say where changes go here or with --sink, such as --sink -`
	c := new(Config)
	c.Default()
	wantError(t, c.Validate(), want)
	wantError(t, parse(t, "cluster: a\n").Validate(), strings.Replace(want, "configuration", "configuration c.yaml", 1))
}

// A configuration that code put together has been through no decoder.
func TestValidateOfCode(t *testing.T) {
	c := &Config{Resources: []Resource{{Name: "pods"}}, Sinks: []Sink{
		{Name: "a", File: &File{Path: "/f", Rotate: -1, Keep: -1}, Queue: Queue{Bytes: -1, Records: -1}, Resync: -1},
		{Name: "b", NATS: &NATS{URL: "nats://h", Replicas: -1, MaxAge: -1}},
	}}
	c.Default()
	wantError(t, c.Validate(), `configuration: 7 problems:
  sinks[0].file.rotate: want a size of at least 0, have -1
  sinks[0].file.keep: want a whole number, at least 0, have -1
  sinks[0].queue.bytes: want a size of at least 1, have -1
  sinks[0].queue.records: want a whole number, at least 1, have -1
  sinks[0].resync: want a length of time of at least 1m, have -1ns
  sinks[1].nats.replicas: want a whole number from 1 to 5, have -1
  sinks[1].nats.maxAge: want a length of time such as 10h or 1h30m, have -1ns`)
}

func TestLoadMissingFile(t *testing.T) {
	_, err := Load("testdata/none.yaml", testEnv)
	wantError(t, err, "configuration testdata/none.yaml: read the file: no such file or directory; correct the path that --config gives, or the rights of the file")
}

func TestClosest(t *testing.T) {
	names := []string{"url", "user", "name", "kafka", "labelSelector"}
	for key, want := range map[string]string{
		"URL": "url", "uesr": "user", "kafak": "kafka", "kafkaa": "kafka", "LabelSelectors": "labelSelector",
		"": "", "xyz": "", "topic": "", strings.Repeat("url", 1000): "",
	} {
		if got := Closest(key, names); got != want {
			t.Errorf("%q: have %q, want %q", key, got, want)
		}
	}
}
