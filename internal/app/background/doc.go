// Package background runs what goes on beside a run.
package background
