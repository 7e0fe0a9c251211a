package kafka

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/test/child"
)

// stopLimit is how long a broker may take for a controlled shutdown.
const stopLimit = time.Minute

// startProcess runs a broker. Its output goes to a file.
func startProcess(logFile string, command []string) (*child.Process, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	p, err := child.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	return p, nil
}

// summary returns the last lines of a broker's log that warn or are part of a
// stack trace, then its very last lines, or why there are none.
func summary(file string) string {
	const trouble, last = 40, 5
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	warned := slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		return strings.Contains(l, "] INFO ")
	})
	shown := append(end(warned, trouble), "...")
	return strings.Join(append(shown, end(lines, last)...), "\n")
}

func end(lines []string, count int) []string { return lines[max(0, len(lines)-count):] }
