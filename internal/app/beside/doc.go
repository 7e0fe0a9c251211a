// Package beside runs what goes on beside a run.
package beside
