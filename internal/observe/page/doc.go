// Package page is the status page of a running exporter: one page for a browser, and the server-sent events that keep
// it live. It holds up nobody: what it shows is copied into a ring of fixed size, from which each reader takes at its
// own pace, and a reader that is too slow for its connection is dropped.
//
// Decisions:
//
//   - Names of objects go to loopback peers only, without a token: a browser behind kubectl port-forward has none.
//   - Everything is inserted as text, under a Content-Security-Policy that allows the page its own three files only.
package page
