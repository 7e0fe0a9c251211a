package config

import (
	"fmt"
	"io"
	"log/slog"
)

const masked = "***"

// Secret is a string that no print, log line or encoding shows, not even by the wrong verb or as part of a larger
// value. Only Reveal gives it away, and the key of a map in JSON, where encoding/json asks a string for nothing.
type Secret string

// Reveal returns the secret itself, for the one call that logs in with it.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string { return masked }

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return masked }

// Format hides the secret from every verb: fmt asks String for only some, and shows the value where a verb is wrong.
func (s Secret) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, masked) }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(masked) }

// MarshalText hides the secret from encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// MarshalJSON hides the secret from JSON and what is made of it.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + masked + `"`), nil }
