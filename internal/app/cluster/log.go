package cluster

import (
	"io"
	"log/slog"

	"k8s.io/klog/v2"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
)

// NewLogger returns the process's logger, and sends client-go's own lines through it.
func NewLogger(out io.Writer, log config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(log.Level)); err != nil {
		level = slog.LevelInfo // the configuration has checked it
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: short}
	var handler slog.Handler = slog.NewTextHandler(out, options)
	if log.Format == "json" {
		handler = slog.NewJSONHandler(out, options)
	}
	logger := slog.New(handler)
	klog.SetSlogLogger(logger)
	return logger
}

// short cuts what is too long for a line: the name of an object may be, in whatever it is told.
func short(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString, slog.KindAny:
		if text := a.Value.String(); len(text) > change.MaxShown {
			a.Value = slog.StringValue(change.Shown(text, change.MaxShown))
		}
	}
	return a
}
