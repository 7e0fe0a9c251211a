// Package reference makes docs/configuration.md from the keys of internal/config.
package reference
