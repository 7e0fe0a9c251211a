package config

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestProblemsAreWorded: each configuration of testdata/problems.txt has the problems below it, or is taken. One that
// is no plain text is in quotes. No problem shows a secret (I9).
func TestProblemsAreWorded(t *testing.T) {
	const path = "testdata/problems.txt"
	want, err := os.ReadFile(path)
	must(t, err)
	var have strings.Builder
	for i, one := range strings.Split(strings.TrimSpace(string(want)), "\n\n") {
		head, told, _ := strings.Cut(one, "\n=> ")
		name, text, _ := strings.Cut(head, "\n")
		if unquoted, err := strconv.Unquote(text); err == nil {
			text = unquoted
		}
		problems := "taken"
		if _, err := Parse("c.yaml", []byte(text+"\n"), testEnv); err != nil {
			problems = strings.TrimPrefix(err.Error(), "configuration c.yaml: ")
		}
		if problems != told || strings.Contains(problems, "hunter2") {
			t.Errorf("%s: have\n%s\nwant\n%s", name, problems, told)
		}
		if i > 0 {
			have.WriteString("\n")
		}
		have.WriteString(head + "\n=> " + problems + "\n")
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		must(t, os.WriteFile(path, []byte(have.String()), 0o644))
	}
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
