package config

// decoder turns nodes into a Config and collects what is wrong with them.
type decoder struct {
	env      func(string) (string, bool)
	origin   origin
	problems *Problems
	settled  map[string]bool // paths that have a problem already
}

// reader reads the value at a path. One that a problem was found with leaves its target alone.
type reader func(path string, n *node)

func (d *decoder) config(path string, n *node, c *Config) {
	d.mapping(path, n, map[string]reader{
		"cluster":   d.text(&c.Cluster),
		"resources": listOf(d, &c.Resources, d.resource),
		"sinks":     listOf(d, &c.Sinks, d.sink),
		"state":     func(path string, n *node) { d.mapping(path, n, map[string]reader{"dir": d.text(&c.State.Dir)}) },
		"listen":    d.text(&c.Listen),
		"log":       d.log(&c.Log),
		"redactKey": d.secret(&c.RedactKey),
		"discovery": func(path string, n *node) {
			d.mapping(path, n, map[string]reader{"interval": d.duration(&c.Discovery.Interval)})
		},
	})
}

func (d *decoder) log(into *Log) reader {
	return func(path string, n *node) {
		d.mapping(path, n, map[string]reader{
			"level":  d.text(&into.Level),
			"format": d.text(&into.Format),
		})
	}
}

func (d *decoder) resource(path string, n *node, r *Resource) {
	if n == nil || n.kind == scalar {
		d.required(path, n, d.text(&r.Name))
		return
	}
	if n.kind == sequence {
		d.mismatch(path, n, "a resource such as pods or {resource: pods, namespaces: [shop]}")
		return
	}
	d.mapping(path, n, map[string]reader{
		"resource":      d.text(&r.Name),
		"namespaces":    d.texts(&r.Namespaces),
		"exclude":       d.texts(&r.Exclude),
		"labelSelector": d.text(&r.LabelSelector),
		"fieldSelector": d.text(&r.FieldSelector),
		"ops":           d.texts(&r.Ops),
		"filter":        d.text(&r.Filter),
		"filterFailure": d.text(&r.FilterFailure),
		"before":        d.boolean(&r.Before),
		"keep":          d.texts(&r.Keep),
		"only":          d.texts(&r.Only),
		"drop":          d.texts(&r.Drop),
		"redact":        d.redaction(&r.Redact),
		"redactEnv":     d.texts(&r.RedactEnv),

		"excludeNamespaces": d.texts(&r.ExcludeNamespaces),
	})
	if d.settled[under(path, "resource")] {
		d.settled[path] = true // where check would miss the name
	}
}

func (d *decoder) sink(path string, n *node, s *Sink) {
	d.mapping(path, n, map[string]reader{
		"name":      d.text(&s.Name),
		"kafka":     func(path string, n *node) { s.Kafka = d.kafka(path, n) },
		"nats":      func(path string, n *node) { s.NATS = d.nats(path, n) },
		"file":      func(path string, n *node) { s.File = d.file(path, n) },
		"format":    d.text(&s.Format),
		"resources": d.texts(&s.Resources),
		"queue":     d.queue(&s.Queue),
		"resync":    d.duration(&s.Resync),
		"oversize":  d.text(&s.Oversize),
		"trim":      d.texts(&s.Trim),
		"deadLetter": func(path string, n *node) {
			d.mapping(path, n, map[string]reader{"dir": d.text(&s.DeadLetter.Dir)})
		},
	})
}

func (d *decoder) queue(into *Queue) reader {
	return func(path string, n *node) {
		d.mapping(path, n, map[string]reader{
			"bytes":   d.size(&into.Bytes, 1),
			"records": d.count(&into.Records, 1, unlimited),
			"full":    d.text(&into.Full),
			"spool":   d.size(&into.Spool, minSpool),
		})
	}
}

func (d *decoder) file(path string, n *node) *File {
	var f File
	d.mapping(path, n, map[string]reader{
		"path":   d.text(&f.Path),
		"rotate": d.size(&f.Rotate, 0),
		"keep":   d.count(&f.Keep, 0, unlimited),
	})
	return &f
}

func (d *decoder) nats(path string, n *node) *NATS {
	var to NATS
	d.mapping(path, n, map[string]reader{
		"url":         d.text(&to.URL),
		"stream":      d.text(&to.Stream),
		"subject":     d.text(&to.Subject),
		"subjects":    d.dictionary(&to.Subjects),
		"tls":         d.tls(&to.TLS),
		"credentials": d.text(&to.Credentials),
		"nkey":        d.text(&to.Nkey),
		"user":        d.text(&to.User),
		"password":    d.secret(&to.Password),
		"token":       d.secret(&to.Token),
		"kv":          d.text(&to.KV),
		"publish":     d.text(&to.Publish),
		"shared":      d.boolean(&to.Shared),
		"domain":      d.text(&to.Domain),
		"storage":     d.text(&to.Storage),
		"maxBytes":    d.size(&to.MaxBytes, 0),
		"discard":     d.text(&to.Discard),
		"history":     d.count(&to.History, 1, maxHistory),
		"replicas":    d.count(&to.Replicas, 1, maxReplicas),
		"maxAge":      d.duration(&to.MaxAge),
	})
	if err := to.takeLogin(); err != nil {
		d.problem(under(path, "url"), err.Error())
	}
	return &to
}

func (d *decoder) tls(into *TLS) reader {
	return func(path string, n *node) {
		d.mapping(path, n, map[string]reader{
			"ca":         d.text(&into.CA),
			"cert":       d.text(&into.Cert),
			"key":        d.text(&into.Key),
			"serverName": d.text(&into.ServerName),
			"first":      d.boolean(&into.First),
		})
	}
}
