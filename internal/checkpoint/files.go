package checkpoint

import (
	"path/filepath"
	"strings"
)

// The modes of what the state is made of: it holds objects, whoever may read the directory (I9).
const (
	privateFile = 0o600
	privateDir  = 0o700
)

// lockName is the file that the owner of a state directory holds locked. Pebble has a lock of its own, which does not
// say who holds it.
const lockName = "LOCK.exporter"

func isTable(name string) bool { return filepath.Ext(name) == ".sst" }

// isLog tells Pebble's logs, whose names are numbers, from those of other programs.
func isLog(name string) bool {
	number, found := strings.CutSuffix(name, ".log")
	return found && number != "" && strings.Trim(number, "0123456789") == ""
}

// isOurs tells the state's files, Pebble's among them, from those of other programs.
func isOurs(name string) bool {
	switch filepath.Ext(name) {
	case ".sst", ".blob", ".dbtmp":
		return true
	}
	for _, prefix := range []string{"MANIFEST-", "OPTIONS-", "marker.", "REMOTE-OBJ-CATALOG-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return isLog(name) || name == "LOCK" || name == "CURRENT" || name == lockName
}

// ofDatabase says whether the file's name is one that Pebble gives.
func ofDatabase(name string) bool {
	for _, pattern := range []string{"LOCK", "marker.*", "MANIFEST-*", "OPTIONS-*", "*.blob", "*.dbtmp", "CURRENT.*"} {
		if ok, _ := filepath.Match(pattern, name); ok { // the patterns are well-formed
			return true
		}
	}
	return isTable(name) || isLog(name)
}
