package pipeline

// spoolsNow starts to spool, where the listener can; false is that it cannot.
func (l *listener) spoolsNow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spool.start()
	return l.spool.takes()
}

// grantOvercommit lets the queue exceed its limit while somebody is stuck, and revokes that afterwards.
func (l *listener) grantOvercommit(stuck bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spool.overcommits = stuck && l.spool.takes(); l.spool.overcommits {
		l.signalFreed()
	}
}
