package rig

import (
	"bufio"
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/kubecdc/kubecdc/bench/harness"
)

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
	body, err := harness.Get(ctx, l.StateDir(), "/metrics")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	for lines := bufio.NewScanner(io.LimitReader(body, 8<<20)); lines.Scan(); {
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
