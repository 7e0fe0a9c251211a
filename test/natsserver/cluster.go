package natsserver

import (
	"fmt"
	"net"
	"net/url"
	"testing"
)

// StartCluster starts three servers, which need not have found each other when it returns. They tell clients nothing of
// each other's addresses, so that a client stays behind its proxies.
func StartCluster(t testing.TB, changes ...func(*Options)) []*Server {
	t.Helper()
	var listeners [3]net.Listener
	var routes []*url.URL
	for i := range listeners {
		var err error
		if listeners[i], err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: listeners[i].Addr().String()})
	}
	var servers []*Server
	for i, listener := range listeners {
		port := listener.Addr().(*net.TCPAddr).Port
		listener.Close()
		servers = append(servers, Start(t, append(changes, func(o *Options) {
			o.ServerName, o.Routes = fmt.Sprint("n", i), routes
			o.Cluster.Name, o.Cluster.Host, o.Cluster.Port, o.Cluster.NoAdvertise = "test", "127.0.0.1", port, true
		})...))
	}
	return servers
}
