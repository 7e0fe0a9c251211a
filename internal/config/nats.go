package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// NATS is a JetStream destination.
type NATS struct {
	URL     string `key:"url" like:"servers" need:"servers such as nats://host:4222" effect:"broker"`
	Stream  string `key:"stream" like:"stream" place:"template" default:"K8S_{cluster}" effect:"place"`
	Subject string `key:"subject" like:"subject" place:"template" default:"k8s.{cluster}.{group}.{resource}.{namespace}.{name}" effect:"new"`
	// Subjects are templates of their own for some of the configuration's resources, by their spelling.
	Subjects map[string]string `key:"subjects" like:"subject" place:"template" effect:"new"`
	Headers  map[string]string `key:"headers" effect:"new"`
	KV       string            `key:"kv" like:"bucket" place:"fixed" effect:"place"`
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
		d.refuse(under(path, "url"), err.Error())
	}
}

// NATSService is how others ask over NATS.
type NATSService struct {
	Subject string   `key:"subject" like:"fixed subject" place:"template" default:"kubecdc.{cluster}"`
	Inboxes []string `key:"inboxes" like:"fixed subject"`
	NATSLogin
}

// TLS is how a server is known and how the client shows itself. The paths are of PEM files.
type TLS struct {
	CA         string `key:"ca"`
	Cert       string `key:"cert" with:"key"`
	Key        string `key:"key"`
	ServerName string `key:"serverName"`
}

// NATSTLS is TLS to a NATS server.
type NATSTLS struct {
	TLS
	First bool `key:"first"`
}

func (n *NATS) check(k *checker, path string) {
	checkHeaders(k, path+".headers", n.Headers)
	for name := range n.Headers {
		k.problemIf(strings.EqualFold(name, "Status") || strings.EqualFold(name, "Description"), under(path+".headers", name),
			"clients of NATS take such a header for the server's own; choose another name")
	}
	isBucket := n.KV != ""
	k.problemIf(!isBucket && n.History != 0, path+".history", "needs a bucket; add kv, or leave it out")
	const own = "a bucket has %s of its own; leave out one of kv and %s"
	k.problemIf(isBucket && n.Stream != "", path+".stream", own, "a stream", "stream")
	k.problemIf(isBucket && n.Subject != "", path+".subject", own, "subjects", "subject")
	k.problemIf(isBucket && len(n.Subjects) > 0, path+".subjects", own, "subjects", "subjects")
	k.problemIf(isBucket && n.MaxAge != 0, path+".maxAge", "a bucket keeps the present state, whatever its age; leave it out")
	k.problemIf(n.Discard == "new" && n.MaxBytes == 0, path+".discard",
		"a stream without a limit is never full; give maxBytes, or leave it out")
	if n.Service != nil {
		n.Service.checkLogin(k, path+".service")
	}
	n.checkLogin(k, path)
}

func (n *NATSLogin) checkLogin(k *checker, path string) {
	// Credentials and nkey are the login by a JWT and, in a file of its own, its seed.
	if keys := n.loginKeys(); len(keys) > 1 && !slices.Equal(keys, []string{"credentials", "nkey"}) {
		k.problem(path, "%d ways to log in, %s; leave all but one out", len(keys), strings.Join(keys, ", "))
	}
	k.problemIf(n.Password != "" && n.User == "", path+".password", "a password without a user; add user")
	// A key that was put where its file's path belongs is found before anything prints it.
	k.problemIf(len(n.Nkey) == 58 && n.Nkey[0] == 'S' && consistsOf(n.Nkey, upper+digits), path+".nkey",
		"want the path of a file that holds the seed, have a seed")
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
func (n *NATSLogin) loginKeys() (keys []string) {
	given := reflect.ValueOf(n).Elem()
	for _, f := range fieldsOf(given.Type()) {
		if f.name != "password" && !given.FieldByIndex(f.Index).IsZero() { // which goes with user
			keys = append(keys, f.name)
		}
	}
	return keys
}
