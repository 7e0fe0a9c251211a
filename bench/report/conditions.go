package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// fact is something that the figures depend on.
type fact struct{ name, value string }

// conditions are what can be found out of the machine and of the versions; what cannot is "unknown".
func conditions() []fact {
	load, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	return []fact{
		{"date", time.Now().UTC().Format(time.DateOnly)},
		{"commit", output("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")},
		{"processor", fmt.Sprintf("%s, %d CPUs", valueOf("/proc/cpuinfo", "model name"), runtime.NumCPU())},
		{"memory", valueOf("/proc/meminfo", "MemTotal")},
		{"system", strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + firstLine("/proc/sys/kernel/osrelease"))},
		{"load average at the end", load},
		{"Go", runtime.Version()},
		{"client-go", moduleVersion("k8s.io/client-go")},
		{"nats-server", moduleVersion("github.com/nats-io/nats-server/v2")},
		{"kafka-go", moduleVersion("github.com/segmentio/kafka-go")},
	}
}

func moduleVersion(path string) string { return output("go", "list", "-m", "-f", "{{.Version}}", path) }

func output(command string, args ...string) string {
	text, err := exec.Command(command, args...).Output()
	return orUnknown(string(text), err)
}

// valueOf is what a file of lines "key : value" says of the key, on the first of its lines.
func valueOf(path, key string) string {
	text, err := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == key {
			return orUnknown(value, err)
		}
	}
	return orUnknown("", err)
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return orUnknown(line, err)
}

func orUnknown(text string, err error) string {
	if text = strings.TrimSpace(text); text == "" || err != nil {
		return "unknown"
	}
	return text
}
