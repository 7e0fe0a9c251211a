package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NATS is a JetStream destination.
type NATS struct {
	URL     string // servers, comma separated; a login in it was moved to NATSLogin
	Stream  string // created where missing, with {cluster} in it as in a subject; "" with KV
	Subject string // template of placeholders; "" with KV
	// Subjects are templates of their own for some of the configuration's resources, by their spelling.
	Subjects map[string]string
	Headers  map[string]string // templates by their names
	KV       string            // a bucket that holds the present state of each object, instead of a stream
	Publish  string            // one of publishings
	Shared   bool              // others write to the stream, too
	Domain   string            // of JetStream; "" is the server's
	TLS      NATSTLS
	NATSLogin
	Service *NATSService // nil is none

	// The following are of a stream that is created.
	Replicas int
	Storage  string   // one of storages
	MaxAge   Duration // of messages; 0 keeps them
	MaxBytes Size     // 0 is without limit
	Discard  string   // one of discards
	History  int      // values that a key of a bucket keeps; 0 is 1
}

// NATSLogin is at most one way to log in: Credentials, Nkey, both of them, User with Password, or Token.
type NATSLogin struct {
	Credentials string // path of a .creds file; of a JWT alone with Nkey
	Nkey        string // path of a seed file
	User        string
	Password    Secret
	Token       Secret
}

// defaultStream has the cluster's name in it, so that two clusters with default settings do not write to one stream.
const defaultStream = "K8S_{cluster}"

// JetStream's own limits.
const (
	maxReplicas = 5
	maxHistory  = 64
)

func (n *NATS) keys() []key {
	stream := n.KV == ""
	return slices.Concat([]key{
		{"url", text(&n.URL),
			"Needed. Servers, separated by commas: `nats://`, `tls://`, `ws://` or `wss://`. It may contain a login."},
		{"stream", orWhen(&n.Stream, texts(), defaultStream, stream),
			"The stream, created if it is missing; `{cluster}` is the cluster's name. A stream `K8S`, the default of " +
				"older versions, stays in use if it is this cluster's. Not with `kv`."},
		{"subject", orWhen(&n.Subject, texts(), "k8s.{cluster}.{group}.{resource}.{namespace}.{name}", stream),
			"Template of subjects, with the placeholders of Kafka's topics, each of which becomes one token. Not " +
				"with `kv`."},
		{"subjects", dictionary(&n.Subjects),
			"Other templates for some resources, spelled as in `resources`."},
		{"headers", dictionary(&n.Headers),
			"Headers of every message: templates by name, with the placeholders of subjects, labels too."},
		{"kv", text(&n.KV), "A bucket that holds the present state of each object, instead of stream and subject."},
		{"publish", firstOf(&n.Publish, publishings()),
			"How messages are sent: `auto` uses fast batches if server and stream support them, otherwise `ordered`. " +
				"`atomic` is for servers that sync every message."},
		{"shared", flag(&n.Shared),
			"Others write to the stream, too. Then messages have ids, and a second exporter is not fenced."},
		{"domain", text(&n.Domain), "JetStream domain. Without it, the server's."},
		{"tls", section(&n.TLS), "How the server and the client prove who they are."},
	}, n.NATSLogin.keys(), []key{
		{"service", optional(&n.Service),
			"Lets others ask over NATS for snapshots and for the state: [Asking from anywhere](signals.md). `{}` is enough. " +
				"Who may ask is for the server's permissions to say. It logs in as the sink, or with the login that is given here. " +
				"Without it, nobody."},
		{"replicas", or(&n.Replicas, counts(1, maxReplicas), "1"), "Replicas of a created stream, 1 to 5."},
		{"storage", firstOf(&n.Storage, storages()), "Storage of a created stream."},
		{"maxAge", durations(0).into(&n.MaxAge),
			"Maximum age of messages in a created stream. Without it they are kept. Not with `kv`."},
		{"maxBytes", sizes(0).into(&n.MaxBytes), "Maximum size of a created stream. Without it, no limit."},
		{"discard", firstOf(&n.Discard, discards()),
			"What a stream at `maxBytes` does: drop the oldest messages, or refuse new ones, so that the sink waits."},
		{"history", counts(1, maxHistory).into(&n.History),
			"How many values of each key the bucket keeps, 1 to 64. Without it, 1. Only with `kv`."},
	})
}

func (n *NATSLogin) keys() []key {
	return []key{
		{"credentials", text(&n.Credentials), "Path of a `.creds` file; with `nkey`, of a file with only a JWT."},
		{"nkey", text(&n.Nkey), "Path of a file with the seed."},
		{"user", text(&n.User), "User name; needs `password`."},
		{"password", secret(&n.Password), "The user's password."},
		{"token", secret(&n.Token), "A token to log in with."},
	}
}

// NATSService is how others ask over NATS.
type NATSService struct {
	Subject   string   // with {cluster} in it as in a stream's name
	Inboxes   []string // below which answers go; none is _INBOX
	NATSLogin          // none is the sink's
}

func (s *NATSService) keys() []key {
	return append([]key{
		{"subject", textOr(&s.Subject, "kubecdc.{cluster}"),
			"The questions are below this subject, such as `kubecdc.prod.snapshot`; `{cluster}` is the cluster's name. Two " +
				"releases of one cluster need two."},
		{"inboxes", list(&s.Inboxes),
			"Subjects below which askers get their answers, and nowhere else. Without it, `_INBOX`."},
	}, s.NATSLogin.keys()...)
}

// AnswersBelow are the subjects below which answers go.
func (s *NATSService) AnswersBelow() []string {
	if len(s.Inboxes) == 0 {
		return []string{"_INBOX"}
	}
	return s.Inboxes
}

// TLS is how a server is known and how the client shows itself. The paths are of PEM files.
type TLS struct {
	CA         string // "" trusts the system's authorities
	Cert       string
	Key        string
	ServerName string // "" is the URL's host
}

// NATSTLS is TLS to a NATS server.
type NATSTLS struct {
	TLS
	First bool // handshake before the server's greeting
}

func (t *TLS) keys() []key {
	return []key{
		{"ca", text(&t.CA), "Path of a PEM file. Without it, the system's authorities."},
		{"cert", text(&t.Cert), "Path of the client's certificate; with `key`."},
		{"key", text(&t.Key), "Path of the client's key; with `cert`."},
		{"serverName", text(&t.ServerName), "Name in the servers' certificates. Without it, the server's host."},
	}
}

func (t *NATSTLS) keys() []key {
	return append(t.TLS.keys(), key{"first", flag(&t.First), "Begin with TLS before the server's greeting."})
}

// isHalf says whether one of certificate and key is missing.
func (t *TLS) isHalf() bool { return (t.Cert == "") != (t.Key == "") }

// routes are the templates of subjects.
func (n *NATS) routes() routes { return routes{key: "subjects", own: n.Subjects, common: n.Subject} }

func (n *NATS) check(k *checker, path string) {
	checkHeaders(k, path+".headers", n.Headers)
	for name := range n.Headers {
		if strings.EqualFold(name, "Status") || strings.EqualFold(name, "Description") {
			k.problem(under(path+".headers", name), "clients of NATS take such a header for the server's own; choose another name")
		}
	}
	if n.URL == "" {
		k.problem(path+".url", "missing; want servers such as nats://host:4222")
	} else if _, err := parseServers(n.URL); err != nil {
		k.problem(path+".url", "%v; have %q", err, withoutLogin(n.URL))
	}
	if n.KV == "" {
		n.checkStream(k, path)
	} else {
		n.checkBucket(k, path)
	}
	if n.Discard == discardNew && n.MaxBytes == 0 {
		k.problem(path+".discard", "a stream without a limit is never full; give maxBytes, or leave it out")
	}
	if n.Shared && (n.KV != "" || n.Publish == "fast" || n.Publish == "atomic") {
		k.problem(path+".shared", "goes with a stream and publish ordered or auto only")
	}
	if n.Service != nil {
		n.Service.check(k, path+".service")
	}
	if n.TLS.isHalf() {
		k.problem(path+".tls", "cert and key go together; give both or neither")
	}
	n.checkLogin(k, path)
}

func (n *NATS) checkStream(k *checker, path string) {
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
}

// check checks the subjects that questions and answers are below.
func (s *NATSService) check(k *checker, path string) {
	checkPrefix(k, path+".subject", s.Subject)
	for i, inbox := range s.Inboxes {
		checkPrefix(k, item(path+".inboxes", i), inbox)
	}
	s.checkLogin(k, path)
}

// checkPrefix checks a subject that others are below, with {cluster} in it or without.
func checkPrefix(k *checker, path, prefix string) {
	literal := strings.ReplaceAll(prefix, "{cluster}", "x")
	if strings.ContainsAny(literal, "{}") {
		k.problem(path, "%q: the only placeholder here is {cluster}", shorten(prefix))
	} else if err := checkSubject(literal); err != nil {
		k.problem(path, "%v", err)
	} else if strings.HasPrefix(literal, "$") {
		k.problem(path, "%q begins with $, which is the server's own; choose another subject", shorten(prefix))
	}
}

func (n *NATS) checkBucket(k *checker, path string) {
	if !consistsOf(n.KV, lower+upper+digits+"-_") {
		k.problem(path+".kv", "%q cannot be a bucket; want letters, digits and any of -_", shorten(n.KV))
	}
	if n.Stream != "" {
		k.problem(path+".stream", "a bucket has a stream of its own; leave out one of kv and stream")
	}
	if n.Subject != "" {
		k.problem(path+".subject", "a bucket has subjects of its own; leave out one of kv and subject")
	}
	if len(n.Subjects) > 0 {
		k.problem(path+".subjects", "a bucket has subjects of its own; leave out one of kv and subjects")
	}
	if n.MaxAge != 0 {
		k.problem(path+".maxAge", "a bucket keeps the present state, whatever its age; leave it out")
	}
}

func (n *NATSLogin) checkLogin(k *checker, path string) {
	if keys := n.loginKeys(); len(keys) > 1 && !n.hasJWT() {
		k.problem(path, "%d ways to log in, %s; leave all but one out", len(keys), strings.Join(keys, ", "))
	}
	if n.Password != "" && n.User == "" {
		k.problem(path+".password", "a password without a user; add user")
	}
	if isSeed(n.Nkey) {
		k.problem(path+".nkey", "want the path of a file that holds the seed, have a seed")
	}
}

// isStream says whether JetStream takes the name: it becomes part of subjects and of file names.
func isStream(name string) bool {
	return name != "" && !strings.ContainsFunc(name, isBlank) && !strings.ContainsAny(name, `.*>/\`)
}

// isSeed recognizes a key that was put where its file's path belongs, before anything prints it.
func isSeed(text string) bool {
	return len(text) == 58 && text[0] == 'S' && consistsOf(text, upper+digits)
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
	n.URL = joinServers(servers)
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

// hasJWT says whether the login is a JWT and, in a file of its own, its seed.
func (n *NATSLogin) hasJWT() bool {
	return slices.Equal(n.loginKeys(), []string{"credentials", "nkey"})
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

// WaitsForRoom says whether a full stream takes nothing, so that the sink waits.
func (n *NATS) WaitsForRoom() bool { return n.Discard == discardNew }

// HasDefaultStream says whether nothing else is configured.
func (n *NATS) HasDefaultStream() bool { return n.Stream == defaultStream }
