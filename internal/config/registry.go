package config

import (
	"net/url"
	"strings"
)

// Registry is a registry of schemas with the API of Confluent's, which the sink's values have then.
type Registry struct {
	URL           string `key:"url"`
	User          string `key:"user"`
	Password      Secret `key:"password"`
	Token         Secret `key:"token"`
	TLS           TLS    `key:"tls"`
	As            string `key:"as" of:"avro" default:"avro"`
	Subject       string `key:"subject" of:"topic record topic-record" default:"topic"`
	Register      *bool  `key:"register" default:"true"`
	Compatibility string `key:"compatibility" of:"backward backward_transitive forward forward_transitive full full_transitive none"`
}

// URLs are the addresses.
func (r *Registry) URLs() []string {
	var all []string
	for address := range strings.SplitSeq(r.URL, ",") {
		all = append(all, strings.TrimRight(strings.TrimSpace(address), "/"))
	}
	return all
}

// check checks how the registry is asked.
func (r *Registry) check(k *checker, path string) {
	if r.URL == "" {
		k.problem(under(path, "url"), "missing; want an address such as http://registry:8081")
	}
	for _, address := range r.URLs() {
		at, err := url.Parse(address)
		switch {
		case r.URL == "":
		case err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || at.RawQuery != "" || at.Fragment != "":
			k.problem(under(path, "url"), "want http://HOST:PORT or https://HOST:PORT, perhaps with a path, have %q", shorten(withoutLogin(address)))
		case at.User != nil:
			k.problem(under(path, "url"), "a login is not part of it; write it as user and password")
		}
	}
	switch {
	case (r.User == "") != (r.Password == ""):
		k.problem(path, "user and password go together; give both or neither")
	case r.User != "" && r.Token != "":
		k.problem(under(path, "token"), "a token here and a user; leave one out")
	}
	r.TLS.check(k, under(path, "tls"))
}
