// Command report writes bench/RESULTS.md: it reads what the benchmarks print, and says beside the figures what they
// were measured on.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

func main() {
	if err := run(os.Stdin, "bench/RESULTS.md"); err != nil {
		fmt.Fprintf(os.Stderr, "report: %v\n", err)
		os.Exit(1)
	}
}

func run(in io.Reader, path string) error {
	var figures strings.Builder
	last := ""
	for lines := bufio.NewScanner(in); lines.Scan(); {
		words := strings.Fields(lines.Text()) // bench NAME VALUE UNIT
		if len(words) < 4 || words[0] != "bench" {
			continue
		}
		if group, _, _ := strings.Cut(words[1], "."); group != last {
			fmt.Fprintf(&figures, "\n## %s\n\n| figure | value | unit |\n|---|---:|---|\n", group)
			last = group
		}
		fmt.Fprintf(&figures, "| `%s` | %s | %s |\n", words[1], words[2], strings.Join(words[3:], " "))
	}
	if last == "" {
		return errors.New("read the figures: there is none; pipe the benchmarks' output into this command")
	}
	const head = "# Results of the benchmarks\n\nWritten by `make bench`. Of figures a CPU-second only the ratios mean " +
		"something on another machine.\n\n| | |\n|---|---|\n"
	if err := os.WriteFile(path, []byte(head+conditions()+figures.String()), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// conditions are what the figures depend on, as far as it can be found out.
func conditions() string {
	var text strings.Builder
	for _, fact := range [][2]string{
		{"date", time.Now().UTC().Format(time.DateOnly)},
		{"commit", output("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")},
		{"processor", fmt.Sprintf("%s, %d CPUs", output("sed", "-n", "s/^model name.*: //p;T;q", "/proc/cpuinfo"), runtime.NumCPU())},
		{"memory", output("sed", "-n", "s/^MemTotal: *//p", "/proc/meminfo")},
		{"system", runtime.GOOS + "/" + runtime.GOARCH + " " + output("uname", "-r")},
		{"load average at the end", output("cut", "-d", " ", "-f", "1", "/proc/loadavg")},
		{"Go", runtime.Version()},
		{"client-go", moduleVersion("k8s.io/client-go")},
		{"nats-server", moduleVersion("github.com/nats-io/nats-server/v2")},
		{"kafka-go", moduleVersion("github.com/segmentio/kafka-go")},
	} {
		fmt.Fprintf(&text, "| %s | %s |\n", fact[0], fact[1])
	}
	return text.String()
}

func moduleVersion(path string) string { return output("go", "list", "-m", "-f", "{{.Version}}", path) }

func output(command string, args ...string) string {
	text, err := exec.Command(command, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
