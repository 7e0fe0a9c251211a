package config

import (
	"net/url"
	"strings"
)

// Registry is a registry of schemas with the API of Confluent's, which the sink's values have then.
type Registry struct {
	URL           string // addresses of one registry, comma separated
	User          string
	Password      Secret
	Token         Secret // instead of the two above
	TLS           TLS
	As            string // avro
	Subject       string // one of subjects
	Register      *bool  // versions that the registry does not have
	Compatibility string // one of compatibilities, of new subjects; "" leaves it to the registry
}

func (r *Registry) keys() []key {
	return []key{
		{"url", text(&r.URL),
			"Needed. Address of the API of Confluent's registry, `http://` or `https://`; several of one registry are " +
				"separated by commas. Apicurio's ends in `/apis/ccompat/v7`."},
		{"user", text(&r.User), "User name; needs `password`."},
		{"password", secret(&r.Password), "The user's password."},
		{"token", secret(&r.Token), "A bearer token, instead of user and password."},
		{"tls", section(&r.TLS), "How the registry and the client prove who they are."},
		{"as", firstOf(&r.As, []string{"avro"}), "What schemas and values are: Avro in its binary encoding."},
		{"subject", firstOf(&r.Subject, subjects()),
			"Names of subjects: `TOPIC-key` and `TOPIC-value`; the records' full names, such as " +
				"`kubecdc.apps.Deployment.Envelope`; or both, `TOPIC-RECORD`."},
		{"register", choice(&r.Register),
			"Register schemas and new versions. Otherwise the newest registered version is used as it is."},
		{"compatibility", word(&r.Compatibility, compatibilities()),
			"Compatibility that a new subject gets. Versions have all of them. Without it, the registry's own."},
	}
}

// subjects are the values of Registry.Subject; the first is the default.
func subjects() []string { return []string{"topic", subjectRecord, "topic-record"} }

// subjectRecord is the same subject in all topics.
const subjectRecord = "record"

// compatibilities are the values of Registry.Compatibility.
func compatibilities() []string {
	return []string{"backward", "backward_transitive", "forward", "forward_transitive", "full", "full_transitive", "none"}
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
	if r.TLS.isHalf() {
		k.problem(under(path, "tls"), "cert and key go together; give both or neither")
	}
}
