package control

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Refusal says why the request is not told what names objects, "" where it is: it is for the exporter's own host, as
// the questions of this package are.
func Refusal(r *http.Request) string { return refusal(r) }

// refusal says why the request is not answered, "" where it is.
//
// The port also serves metrics, and so is open to others. Who reaches it over the loopback interface is on the
// exporter's host, or in its pod, or was let in by kubectl port-forward. What is left are programs on this host that
// carry the wish of somebody else: a proxy, which says so, and a browser, which names the page it asks for (Origin, RFC
// 6454), and the name under which it found us (Host): with a name that is no loopback address, that is DNS rebinding.
// The proxy of a service mesh hands connections of other hosts on from a loopback address, without a word and to the
// pod's own address.
//
// A proxy on this host that says nothing of itself cannot be told from a program here. So what may be asked for, and
// changed, wants a Token beside; the page does not, since a browser behind kubectl port-forward has none.
func refusal(r *http.Request) string {
	switch {
	case !isLoopback(r.RemoteAddr) || isToOtherAddress(r):
		return "this is answered on the loopback interface only: run the command on the exporter's host, in its pod, or through kubectl port-forward"
	case isProxied(r.Header):
		return "this is not answered through a proxy: run the command on the exporter's host, in its pod, or through kubectl port-forward"
	case r.Header.Get("Origin") != "":
		return "this is not answered to web pages: use the exporter's own commands"
	case !isLocalName(r.Host):
		return "this is answered under a loopback address only: use 127.0.0.1 or localhost, not " + r.Host
	}
	return ""
}

// isToOtherAddress says whether the connection was made to an address that other hosts know, too.
func isToOtherAddress(r *http.Request) bool {
	local, known := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return known && !isLoopback(local.String())
}

// isLoopback takes host and port.
func isLoopback(address string) bool {
	peer, err := netip.ParseAddrPort(address)
	return err == nil && peer.Addr().IsLoopback()
}

// isLocalName takes a Host header, with or without a port.
func isLocalName(name string) bool {
	host, _, err := net.SplitHostPort(name)
	if err != nil {
		host = strings.Trim(name, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

// isProxied finds the headers of RFC 7239 and of those before it.
func isProxied(header http.Header) bool {
	for name := range header {
		if name == "Forwarded" || name == "Via" || strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return false
}

// isJSON says whether the body is declared as JSON: no form of a web page can do that without being asked first (CORS
// preflight, Fetch standard).
func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}
