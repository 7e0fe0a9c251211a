// Command report writes bench/RESULTS.md: it reads what the benchmarks print, and says beside the figures what they
// were measured on. Of two figures of one name the later counts.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	began := time.Now()
	out := flag.String("out", "bench/RESULTS.md", "the file to write")
	flag.Parse()
	if err := run(os.Stdin, *out, began); err != nil {
		fmt.Fprintf(os.Stderr, "report: %v\n", err)
		os.Exit(1)
	}
}

func run(in io.Reader, path string, began time.Time) error {
	figures, err := read(in)
	if err != nil {
		return err
	}
	if len(figures) == 0 {
		return errors.New("read the figures: there is none; pipe the benchmarks' output into this command")
	}
	text := document(figures, append(conditions(), fact{"took", time.Since(began).Round(time.Second).String()}))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// figure is a line "bench NAME VALUE UNIT"; the name's part before the dot is the benchmark's.
type figure struct{ name, value, unit string }

// read returns the figures in the order in which they come first.
func read(in io.Reader) ([]figure, error) {
	var all []figure
	place := map[string]int{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || words[0] != "bench" {
			continue
		}
		f := figure{words[1], words[2], strings.Join(words[3:], " ")}
		if i, known := place[f.name]; known {
			all[i] = f
			continue
		}
		place[f.name] = len(all)
		all = append(all, f)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the figures: %w", err)
	}
	return all, nil
}

// document is the whole text.
func document(figures []figure, facts []fact) string {
	var b strings.Builder
	b.WriteString("# Results of the benchmarks\n\nWritten by `make bench`. Of figures a CPU-second only the ratios mean something on another machine.\n\n| | |\n|---|---|\n")
	for _, f := range facts {
		fmt.Fprintf(&b, "| %s | %s |\n", f.name, f.value)
	}
	last := ""
	for _, f := range figures {
		if group, _, _ := strings.Cut(f.name, "."); group != last {
			fmt.Fprintf(&b, "\n## %s\n\n| figure | value | unit |\n|---|---:|---|\n", group)
			last = group
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.name, f.value, f.unit)
	}
	return b.String()
}
