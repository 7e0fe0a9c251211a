package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Listening is where the exporter serves its metrics, and its process id. The file of the state that says so has them
// first.
func (l *Line) Listening() (address, pid string, err error) {
	text, err := os.ReadFile(filepath.Join(l.dir, "state", "address"))
	fields := strings.Fields(string(text))
	if err != nil {
		return "", "", fmt.Errorf("read where the exporter listens: %w", err)
	}
	if len(fields) < 2 {
		return "", "", fmt.Errorf("read where the exporter listens: %q is no address with a process id", text)
	}
	return fields[0], fields[1], nil
}

// Metric is the value of a series, 0 where there is none.
func (l *Line) Metric(ctx context.Context, series string) (float64, error) {
	var found float64
	err := l.Metrics(ctx, func(name string, value float64) {
		if name == series {
			found = value
		}
	})
	return found, err
}

var clusterLabel = regexp.MustCompile(`\{cluster="[^"]*",?`)

// Metrics gives each series with its value.
func (l *Line) Metrics(ctx context.Context, give func(name string, value float64)) (err error) {
	address, _, err := l.Listening()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	for lines := bufio.NewScanner(io.LimitReader(answer.Body, 8<<20)); lines.Scan(); {
		at := strings.LastIndexByte(lines.Text(), ' ')
		if at < 0 || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		value, err := strconv.ParseFloat(lines.Text()[at+1:], 64)
		if err != nil {
			return err
		}
		give(clusterLabel.ReplaceAllString(lines.Text()[:at], "{"), value)
	}
	return nil
}
