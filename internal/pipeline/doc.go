// Package pipeline is the shell around the pure core: it starts and stops the goroutines, in order.
package pipeline
