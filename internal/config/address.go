package config

import (
	"net"
	"strconv"
)

// isListenAddress says whether a server can listen there: HOST:PORT, or :PORT for every host.
func isListenAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
