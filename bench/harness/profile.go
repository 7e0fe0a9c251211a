package harness

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
)

// StartProfile profiles the CPU into the file until the returned function is called; "" is no file and no profile.
func StartProfile(file string) (func() error, error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	out, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("create the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return nil, errors.Join(fmt.Errorf("start the profile: %w", err), out.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return out.Close()
	}, nil
}

// WriteProfile writes a profile of the runtime's, such as "allocs" or "heap"; "" is no file and no profile.
func WriteProfile(name, file string) error {
	if file == "" {
		return nil
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("create the profile: %w", err)
	}
	return errors.Join(pprof.Lookup(name).WriteTo(out, 0), out.Close())
}
