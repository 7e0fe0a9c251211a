package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NATS is a JetStream destination.
type NATS struct {
	URL     string `key:"url" need:"servers such as nats://host:4222" effect:"broker"`
	Stream  string `key:"stream" default:"K8S_{cluster}" effect:"place"`
	Subject string `key:"subject" default:"k8s.{cluster}.{group}.{resource}.{namespace}.{name}" effect:"new"`
	// Subjects are templates of their own for some of the configuration's resources, by their spelling.
	Subjects map[string]string `key:"subjects" effect:"new"`
	Headers  map[string]string `key:"headers" effect:"new"`
	KV       string            `key:"kv" effect:"place"`
	Shared   bool              `key:"shared" effect:"fence"`
	Domain   string            `key:"domain" effect:"broker"`
	TLS      NATSTLS           `key:"tls"`
	NATSLogin
	Service *NATSService `key:"service"`

	// The following are of a stream that is created.
	Replicas int      `key:"replicas" default:"1" min:"1" max:"5"`
	Storage  string   `key:"storage" of:"file memory" default:"file"`
	MaxAge   Duration `key:"maxAge"`
	MaxBytes Size     `key:"maxBytes"`
	Discard  string   `key:"discard" of:"old new" default:"old"`
	History  int      `key:"history" min:"1" max:"64"`
}

// NATSLogin is at most one way to log in: Credentials, Nkey, both of them, User with Password, or Token.
type NATSLogin struct {
	Credentials string `key:"credentials"`
	Nkey        string `key:"nkey"`
	User        string `key:"user"`
	Password    Secret `key:"password"`
	Token       Secret `key:"token"`
}

// applies says whether the key has a default: a bucket has a stream of its own.
func (n *NATS) applies(key string) bool { return n.KV == "" || key != "stream" && key != "subject" }

// afterRead moves a login in the URL to the keys for it.
func (n *NATS) afterRead(d *decoder, path string) {
	if err := n.takeLogin(); err != nil {
		d.problem(under(path, "url"), err.Error())
	}
}

// NATSService is how others ask over NATS.
type NATSService struct {
	Subject string   `key:"subject" default:"kubecdc.{cluster}"`
	Inboxes []string `key:"inboxes"`
	NATSLogin
}

// TLS is how a server is known and how the client shows itself. The paths are of PEM files.
type TLS struct {
	CA         string `key:"ca"`
	Cert       string `key:"cert"`
	Key        string `key:"key"`
	ServerName string `key:"serverName"`
}

// NATSTLS is TLS to a NATS server.
type NATSTLS struct {
	TLS
	First bool `key:"first"`
}

// check finds a certificate without a key, or a key without one. nil is none of both.
func (t *TLS) check(k *checker, path string) {
	if t != nil && (t.Cert == "") != (t.Key == "") {
		k.problem(path, "cert and key go together; give both or neither")
	}
}

func (n *NATS) check(k *checker, path string) {
	checkHeaders(k, path+".headers", n.Headers)
	for name := range n.Headers {
		if strings.EqualFold(name, "Status") || strings.EqualFold(name, "Description") {
			k.problem(under(path+".headers", name), "clients of NATS take such a header for the server's own; choose another name")
		}
	}
	if _, err := parseServers(n.URL); err != nil && n.URL != "" {
		k.problem(path+".url", "%v; have %q", err, withoutLogin(n.URL))
	}
	if n.KV == "" {
		if !isStream(n.Stream) {
			k.problem(path+".stream", "%q cannot be a stream; leave out white space and any of .*>/\\", shorten(n.Stream))
		}
		if err := checkSubject(n.Subject); err != nil {
			k.problem(path+".subject", "%v", err)
		}
		for _, name := range slices.Sorted(maps.Keys(n.Subjects)) {
			if err := checkSubject(n.Subjects[name]); err != nil {
				k.problem(under(path+".subjects", name), "%v", err)
			}
		}
		if n.History != 0 {
			k.problem(path+".history", "needs a bucket; add kv, or leave it out")
		}
	} else {
		if !consistsOf(n.KV, lower+upper+digits+"-_") {
			k.problem(path+".kv", "%q cannot be a bucket; want letters, digits and any of -_", shorten(n.KV))
		}
		for _, f := range []struct {
			key, what string
			given     bool
		}{{"stream", "a stream", n.Stream != ""}, {"subject", "subjects", n.Subject != ""}, {"subjects", "subjects", len(n.Subjects) > 0}} {
			if f.given {
				k.problem(under(path, f.key), "a bucket has %s of its own; leave out one of kv and %s", f.what, f.key)
			}
		}
		if n.MaxAge != 0 {
			k.problem(path+".maxAge", "a bucket keeps the present state, whatever its age; leave it out")
		}
	}
	if n.Discard == "new" && n.MaxBytes == 0 {
		k.problem(path+".discard", "a stream without a limit is never full; give maxBytes, or leave it out")
	}
	if n.Shared && n.KV != "" {
		k.problem(path+".shared", "goes with a stream only")
	}
	if n.Service != nil {
		n.Service.check(k, path+".service")
	}
	n.TLS.check(k, path+".tls")
	n.checkLogin(k, path)
}

// check checks the subjects that questions and answers are below.
func (s *NATSService) check(k *checker, path string) {
	checkPrefix(k, path+".subject", s.Subject)
	for i, inbox := range s.Inboxes {
		checkPrefix(k, item(path+".inboxes", i), inbox)
	}
	s.checkLogin(k, path)
}

// checkPrefix checks a subject that others are below.
func checkPrefix(k *checker, path, prefix string) {
	if checkFixed(k, path, prefix, checkSubject) && strings.HasPrefix(prefix, "$") {
		k.problem(path, "%q begins with $, which is the server's own; choose another subject", shorten(prefix))
	}
}

func (n *NATSLogin) checkLogin(k *checker, path string) {
	// Credentials and nkey are the login by a JWT and, in a file of its own, its seed.
	if keys := n.loginKeys(); len(keys) > 1 && !slices.Equal(keys, []string{"credentials", "nkey"}) {
		k.problem(path, "%d ways to log in, %s; leave all but one out", len(keys), strings.Join(keys, ", "))
	}
	if n.Password != "" && n.User == "" {
		k.problem(path+".password", "a password without a user; add user")
	}
	// A key that was put where its file's path belongs is found before anything prints it.
	if len(n.Nkey) == 58 && n.Nkey[0] == 'S' && consistsOf(n.Nkey, upper+digits) {
		k.problem(path+".nkey", "want the path of a file that holds the seed, have a seed")
	}
}

// isStream says whether JetStream takes the name: it becomes part of subjects and of file names.
func isStream(name string) bool {
	return name != "" && !strings.ContainsFunc(name, isBlank) && !strings.ContainsAny(name, `.*>/\`)
}

// takeLogin moves the login of the URL, user:password or a token, to the fields for it, so that the URL may be shown,
// and gives each server in it a scheme. A URL that cannot be read is left for check to name.
func (n *NATS) takeLogin() error {
	servers, err := parseServers(n.URL)
	if err != nil {
		return nil
	}
	login, err := cutLogin(servers)
	if err != nil {
		return err
	}
	if keys := n.loginKeys(); login != nil && keys != nil {
		return fmt.Errorf("a login here and in %s; leave one out", strings.Join(keys, ", "))
	}
	n.URL = ""
	for i, server := range servers {
		if i > 0 {
			n.URL += ","
		}
		n.URL += server.String()
	}
	if login == nil {
		return nil
	}
	if password, found := login.Password(); found {
		n.User, n.Password = login.Username(), Secret(password)
	} else {
		n.Token = Secret(login.Username())
	}
	return nil
}

// loginKeys are the ways to log in that are given, by their keys.
func (n *NATSLogin) loginKeys() []string {
	var keys []string
	for _, way := range []struct {
		key   string
		given bool
	}{
		{"credentials", n.Credentials != ""},
		{"nkey", n.Nkey != ""},
		{"user", n.User != "" || n.Password != ""},
		{"token", n.Token != ""},
	} {
		if way.given {
			keys = append(keys, way.key)
		}
	}
	return keys
}
