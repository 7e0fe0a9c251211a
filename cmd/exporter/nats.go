package main

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/sink/nats"
)

// natsSubject is the configured one, or that of a bucket's keys.
func natsSubject(n *config.NATS, cluster string) (*encode.Subject, error) {
	if n.KV != "" {
		return encode.NewSubject("$KV."+n.KV+".{group}.{resource}.{namespace}.{name}", cluster)
	}
	return encode.NewSubject(n.Subject, cluster)
}

func natsOptions(s *config.Sink, subject *encode.Subject) nats.Options {
	n := s.NATS
	options := nats.Options{
		URL: n.URL, Name: "kubecdc exporter, sink " + s.Name, Domain: n.Domain, Publish: n.Publish, Shared: n.Shared,
		Storage: n.Storage, Replicas: n.Replicas, MaxAge: time.Duration(n.MaxAge), MaxBytes: int64(n.MaxBytes),
		DiscardNew: n.Discard == config.DiscardNew,
		TLS:        natsTLS(n.TLS), CredentialsFile: n.Credentials, NkeySeedFile: n.Nkey,
		User: n.User, Password: n.Password.Reveal(), Token: n.Token.Reveal(),
	}
	if n.KV != "" {
		options.KV, options.History = n.KV, n.History
	} else {
		options.Stream, options.Subjects = n.Stream, []string{subject.Filter()}
	}
	return options
}

// natsTLS is nil where nothing is configured: the URL's scheme decides then.
func natsTLS(tls config.TLS) *nats.TLS {
	if tls == (config.TLS{}) {
		return nil
	}
	return &nats.TLS{CAFile: tls.CA, CertFile: tls.Cert, KeyFile: tls.Key, ServerName: tls.ServerName, First: tls.First}
}
