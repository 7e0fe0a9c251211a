package main

import (
	"testing"
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
