package control

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// addressName is the file in the state directory that says where the exporter listens: address, space, process id. One
// that an exporter left behind which was killed does no harm: it has another process's id, or nobody owns the directory.
const addressName = "address"

// Announce writes where this process listens into its state directory, and returns what removes it.
func Announce(dir string, listening net.Addr) (withdraw func() error, err error) {
	path := filepath.Join(dir, addressName)
	text := fmt.Sprintf("%s %d\n", listening, os.Getpid())
	// Renamed into place: a reader finds all of it or nothing.
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write the address into the state directory: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, fmt.Errorf("write the address into the state directory: %w", err)
	}
	return func() error {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the address from the state directory: %w", err)
		}
		return nil
	}, nil
}

// NotRunningError says that nobody owns the state directory.
type NotRunningError struct{ Dir string }

func (e *NotRunningError) Error() string {
	return fmt.Sprintf("no exporter runs with the state in %s: start it, or name its directory with --state-dir or its address with --server", e.Dir)
}

// Locate finds the exporter that owns the state directory. It returns a *NotRunningError where there is none.
func Locate(dir string) (*Client, error) {
	pid, running, err := checkpoint.Owner(dir)
	if err != nil {
		return nil, err
	}
	if !running {
		return nil, &NotRunningError{dir}
	}
	text, err := os.ReadFile(filepath.Join(dir, addressName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read where the exporter listens: %w", err)
	}
	address, owner, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if owner != strconv.Itoa(pid) {
		return nil, fmt.Errorf("process %d has the state in %s and does not listen yet, or no more: try again, or name its address with --server", pid, dir)
	}
	return newClient("http://" + dialable(address)), nil
}

// dialable turns the address of a listener into one that can be connected to, over the loopback interface where the
// listener takes it.
func dialable(address string) string {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil || !parsed.Addr().IsUnspecified() {
		return address
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(parsed.Port())))
}
