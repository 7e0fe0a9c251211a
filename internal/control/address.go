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

// addressName is the file in the state directory that says where the exporter listens: address, process id and token,
// with spaces between. One that an exporter left behind which was killed does no harm: it has another process's id, or
// nobody owns the directory. Only its owner may read it.
const addressName = "address"

// Announce writes where this process listens into its state directory, and returns what removes it.
func Announce(dir string, listening net.Addr, token Token) (withdraw func() error, err error) {
	path := filepath.Join(dir, addressName)
	text := fmt.Sprintf("%s %d %s\n", listening, os.Getpid(), token.text)
	// Renamed into place: a reader finds all of it or nothing.
	if err := writePrivate(path+".new", text); err != nil {
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
	part := strings.Fields(string(text)) // of an exporter of an earlier version two
	if len(part) < 2 || part[1] != strconv.Itoa(pid) {
		return nil, fmt.Errorf("process %d uses the state in %s but does not listen yet, or no longer: try again, or give its address with --server", pid, dir)
	}
	client := newClient("http://" + dialable(part[0]))
	client.token = Token{strings.Join(part[2:], "")}
	return client, nil
}

// writePrivate makes the file anew, whatever mode one had that was there.
func writePrivate(path, text string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
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
