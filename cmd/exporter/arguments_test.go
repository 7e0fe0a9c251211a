package main

import (
	"testing"
	"time"
)

func TestArgumentsShowNoPassword(t *testing.T) {
	for text, want := range map[string]string{
		"pods":                    "pods",
		"nats://me:secret@bus":    "…@bus",
		"nats://me:sec@ret@bus:1": "…@bus:1",
	} {
		if got := withoutLogin(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

func TestTailSince(t *testing.T) {
	now := time.UnixMilli(1_000_000_000).UTC()
	for text, want := range map[string]time.Time{"": now, "start": {}, "10m": now.Add(-10 * time.Minute), "1970-01-02T00:00:00.5Z": time.UnixMilli(86_400_500).UTC()} {
		if got, err := parseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("since %q is %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"-5m", "yesterday", "5"} {
		if got, err := parseSince(text, now); err == nil {
			t.Errorf("since %q is %s", text, got)
		}
	}
}
