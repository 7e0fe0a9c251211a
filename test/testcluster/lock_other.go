//go:build !unix

package testcluster

import "context"

// lock does nothing: devcluster itself builds on Unix only.
func lock(context.Context, string) (unlock func(), err error) { return func() {}, nil }
