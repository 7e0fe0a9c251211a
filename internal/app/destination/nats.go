package destination

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats"
	"github.com/kubecdc/kubecdc/internal/sink/nats/service"
)

// natsRoutes are the subjects of the sink's records, and the wildcards that cover them.
func natsRoutes(n *config.NATS, c *cluster.Cluster) (routes encode.Routes, filters []string, err error) {
	template := n.Subject
	if n.KV != "" { // it has keys of its own
		template = "$KV." + n.KV + ".{group}.{resource}.{namespace}.{name}"
	}
	subject, err := encode.NewSubject(template, c.Name)
	if err != nil {
		return routes, nil, err
	}
	all := []string{subject.Filter()}
	routes, err = routesOf(c, subject, n.Subjects, func(template string) (encode.Destination, error) {
		own, err := encode.NewSubject(template, c.Name)
		if err == nil {
			all = append(all, own.Filter())
		}
		return own, err
	})
	return routes, nats.Filters(all...), err
}

// namesCluster says whether every subject of the sink has the cluster's name in it. A bucket's keys have not.
func namesCluster(n *config.NATS) bool {
	all := slices.AppendSeq([]string{n.Subject}, maps.Values(n.Subjects))
	return n.KV == "" && !slices.ContainsFunc(all, func(template string) bool { return !strings.Contains(template, "{cluster}") })
}

// crowded says why the newest message of each subject would not be all that there is of the sink's objects; "" is that
// it would be.
func crowded(s *config.Sink, c *cluster.Cluster, routes encode.Routes) string {
	taken := map[string]bool{}
	for _, of := range c.Taken(s) {
		stream := &of.Stream
		if subject, is := routes.To(stream).(*encode.Subject); is && subject.Misfit(!of.IsNamed()) != "" {
			return subject.Misfit(!of.IsNamed())
		}
		keys := []change.Key{{Namespace: stream.Namespace, Name: "a"}, {Namespace: stream.Namespace, Name: "b"}}
		if stream.Namespace == "" && !stream.Resource.ClusterScoped {
			keys = []change.Key{{Namespace: "a", Name: "a"}, {Namespace: "a", Name: "b"}, {Namespace: "b", Name: "a"}}
		}
		for _, key := range keys {
			subject := string(routes.Append(nil, &change.Record{Stream: stream, Key: key}))
			if taken[subject] {
				return fmt.Sprintf("subject %s would be that of several objects, which push each other out: have {resource}, {namespace} and {name} in the subjects", subject)
			}
			taken[subject] = true
		}
	}
	return ""
}

// natsDestination is a stream or a bucket.
func natsDestination(s *config.Sink, c *cluster.Cluster) (*Destination, error) {
	routes, subjects, err := natsRoutes(s.NATS, c)
	if err != nil {
		return nil, err
	}
	headers, err := headersOf(s.NATS.Headers, c.Name)
	if err != nil {
		return nil, err
	}
	options := natsOptions(s, c, subjects)
	options.Uncompacted = cmp.Or(options.Uncompacted, crowded(s, c, routes))
	at := natsPlace(s.NATS, c.Name)
	hearer, err := natsHearer(s, c, &options)
	if err != nil {
		return nil, err
	}
	return &Destination{
		encoding: encode.Options{Transport: encode.NATS, Destination: routes, Headers: headers},
		Places:   []Place{at},
		Address:  strings.Join(at.servers, ",") + " " + at.What, Hearer: hearer, What: at.What,
		build: func(to Outlet) (sink.Sink, error) {
			options := options
			options.Retry = retried(to.Told, s.Name)
			return nats.New(options)
		},
		read: func(start sink.Start) (sink.Reader, error) { return nats.NewReader(options, start) },
		StateLog: func(name string, retry sink.RetryFunc) (statelog.Place, error) {
			return natsStateLog(options, name, retry)
		},
	}, nil
}

// natsHearer is the service by which others ask, nil where none is configured.
func natsHearer(s *config.Sink, c *cluster.Cluster, options *nats.Options) (func(*RequestHandler) (Hearer, error), error) {
	if s.NATS.Service == nil {
		return nil, nil
	}
	configured := s.NATS.Service
	subject := encode.StreamName(configured.Subject, c.Name)
	for _, taken := range options.Subjects {
		if nats.Overlap(subject+".>", taken) {
			return nil, usage.Errorf("nats.service.subject: the stream takes %s, and so would keep the questions below %s: choose another subject", taken, subject)
		}
	}
	var inboxes []string
	answersBelow := configured.Inboxes
	if len(answersBelow) == 0 {
		answersBelow = []string{"_INBOX"}
	}
	for _, inbox := range answersBelow {
		inbox = encode.StreamName(inbox, c.Name)
		for _, own := range append([]string{subject + ".>"}, options.Subjects...) {
			if nats.Overlap(inbox+".>", own) {
				return nil, usage.Errorf("nats.service.inboxes: %s is the exporter's own, and an answer below %s could go there: choose another subject", own, inbox)
			}
		}
		inboxes = append(inboxes, inbox+".")
	}
	connection := options.Connection("kubecdc exporter, service of sink " + s.Name)
	if configured.NATSLogin != (config.NATSLogin{}) {
		connection.Login = natsLogin(s.NATS, &configured.NATSLogin)
	}
	return func(d *RequestHandler) (Hearer, error) {
		return service.New(service.Options{
			Connection: connection, Subject: subject, Inboxes: inboxes, Version: c.Version,
			Metadata: map[string]string{"cluster": c.Name, "sink": s.Name}, Endpoints: d.Questions, Code: control.StatusOf,
			Failed: d.Hears, Serving: func() { d.Hears(nil) }, Refused: d.Refused,
		}), nil
	}, nil
}

// natsStateLog is a bucket that keeps one value of each key, on the servers of the sink with the options.
func natsStateLog(of nats.Options, name string, retry sink.RetryFunc) (statelog.Place, error) {
	options := nats.Options{
		URL: of.URL, Name: "kubecdc exporter, log of the state", Domain: of.Domain, Login: of.Login, KV: name, History: 1,
		Storage: of.Storage, Replicas: of.Replicas, Whole: true, Retry: retry, Extra: of.Extra,
	}
	writer, err := nats.New(options)
	return statelog.Place{
		Name: "bucket " + name, Sink: writer,
		Reader: func() (sink.Reader, error) { return nats.NewReader(options, sink.Start{}) },
		Of:     func(slot string) (string, []byte) { return "$KV." + name + "." + slot, nil },
	}, err
}

func natsPlace(n *config.NATS, cluster string) Place {
	p := Place{What: "stream " + encode.StreamName(n.Stream, cluster), Key: "nats.stream"}
	if n.KV != "" {
		p = Place{What: "bucket " + n.KV, Key: "nats.kv"}
	}
	if n.Domain != "" {
		p.What += " of domain " + n.Domain
	}
	for _, server := range strings.Split(n.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(server)); err == nil {
			p.servers = append(p.servers, withPort(u.Host, "4222"))
		}
	}
	return p
}

func natsOptions(s *config.Sink, c *cluster.Cluster, subjects []string) nats.Options {
	n := s.NATS
	options := nats.Options{
		URL: n.URL, Name: "kubecdc exporter, sink " + s.Name, Domain: n.Domain,
		Storage: n.Storage, Replicas: n.Replicas, MaxAge: time.Duration(n.MaxAge), MaxBytes: int64(n.MaxBytes),
		DiscardNew: n.Discard == "new",
		Login:      natsLogin(n, &n.NATSLogin),
		Judge:      c.Judge(namesCluster(n)),
	}
	if s.Patched() {
		options.Uncompacted = uncompacted
	}
	if n.KV != "" {
		options.KV, options.History = n.KV, n.History
	} else {
		options.Stream, options.Subjects = encode.StreamName(n.Stream, c.Name), subjects
	}
	return options
}

// natsLogin is the login at the servers of the sink. Without TLS in the configuration the URL's scheme decides.
func natsLogin(n *config.NATS, login *config.NATSLogin) nats.Login {
	made := nats.Login{
		CredentialsFile: login.Credentials, NkeySeedFile: login.Nkey, User: login.User, Password: login.Password.Reveal(), Token: login.Token.Reveal(),
		TLSFirst: n.TLS.First,
	}
	if tls := n.TLS; tls != (config.NATSTLS{}) {
		made.TLS = &sink.TLS{CAFile: tls.CA, CertFile: tls.Cert, KeyFile: tls.Key, ServerName: tls.ServerName}
	}
	return made
}
