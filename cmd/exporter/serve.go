package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/control"
)

// handler serves what telemetry shows to everybody, and what an operator asks to this host.
func (a *assembly) handler(telemetry http.Handler, functions control.Functions) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", telemetry)
	questions := control.Handler(functions)
	for _, path := range control.Paths() {
		mux.Handle(path, questions)
	}
	return mux
}

// serve answers on the configured address until the returned function is called, which waits for the server's goroutine
// and for all answers. The state directory says where, for the commands.
func (a *assembly) serve(ctx context.Context, handler http.Handler) (stop func(), err error) {
	address := a.cfg.Listen
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: choose another address with --listen, or with listen in the configuration", address, cause(err))
	}
	answering, stopAnswering := context.WithCancel(context.WithoutCancel(ctx)) // also while the queues are emptied
	open := &gate{handler: handler}
	server := &http.Server{Handler: open, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return answering }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.logger.Error("status server ended", "address", address, "error", err)
		}
	}()
	a.logger.Info("serving metrics and status", "address", listener.Addr().String())
	withdraw := a.announce(listener.Addr())
	return func() {
		withdraw()
		stopAnswering()
		server.Close() // nobody is owed the end of an answer
		open.shut()
		<-done
	}, nil
}

// announce writes the address into the state directory, and returns what removes it. Without it the exporter works, and
// the commands must be told where it listens.
func (a *assembly) announce(address net.Addr) (withdraw func()) {
	warn := func(err error) {
		if err != nil {
			a.logger.Warn("commands find this exporter only with --server", "error", err)
		}
	}
	remove, err := control.Announce(a.cfg.State.Dir, address)
	if err != nil {
		warn(err)
		return func() {}
	}
	return func() { warn(remove()) }
}

// gate lets requests in until it is shut. http.Server.Close does not wait for handlers, and the state that they read is
// closed after it.
type gate struct {
	handler http.Handler
	inside  sync.RWMutex // read-locked by each request
	closed  bool         // guarded by inside
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.inside.RLock()
	defer g.inside.RUnlock()
	if g.closed {
		http.Error(w, "the exporter stops", http.StatusServiceUnavailable)
		return
	}
	g.handler.ServeHTTP(w, r)
}

// shut returns when nobody is inside, and lets nobody in any more.
func (g *gate) shut() {
	g.inside.Lock()
	defer g.inside.Unlock()
	g.closed = true
}
