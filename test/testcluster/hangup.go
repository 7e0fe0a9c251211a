package testcluster

import (
	"os"
	"os/signal"
	"syscall"
)

// HearHangups makes programs that a test starts hear SIGHUP, also where the tests themselves were told to ignore it, as
// under nohup: a program inherits what its parent ignores, and not what its parent handles.
func HearHangups() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
}
