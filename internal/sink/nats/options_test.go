package nats

import (
	"testing"
	"time"
)

func TestNewNamesTheField(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(*Options)
	}{
		{`option URL is empty: name a server, such as "nats://host:4222"`, func(o *Options) { o.URL = "" }},
		{`option URL "http://h" has the scheme "http": use nats, tls, ws or wss`, func(o *Options) { o.URL = "nats://a,http://h" }},
		{`option URL "nats://u:xxxxx@" has no host: write it as "nats://host:4222"`, func(o *Options) { o.URL = "nats://u:p@" }},
		{`option URL does not parse: write it as "nats://host:4222"`, func(o *Options) { o.URL = "nats://u:p%@h" }},
		{`option Stream "a.b" is not a stream's name: it has no dots, wildcards, slashes and spaces`, func(o *Options) { o.Stream = "a.b" }},
		{`option Subjects is empty: name what the stream takes, such as "k8s.>"`, func(o *Options) { o.Subjects = nil }},
		{`option Subjects: "k8s.>.x" is not a subject: write it as "k8s.prod.>"`, func(o *Options) { o.Subjects = []string{"k8s.>.x"} }},
		{`options Domain "a b" and InboxPrefix "" must have no wildcards and spaces: leave them out`, func(o *Options) { o.Domain = "a b" }},
		{`option Replicas is 6: use 1 to 5`, func(o *Options) { o.Replicas = 6 }},
		{`option MaxAge is 1ms: use 1s or more, or 0 for ever`, func(o *Options) { o.MaxAge = time.Millisecond }},
		{`option MaxBytes is -1: use 0 for no limit`, func(o *Options) { o.MaxBytes = -1 }},
		{`option DiscardNew is set without MaxBytes: set both or none`, func(o *Options) { o.DiscardNew = true }},
		{`options CredentialsFile, NkeySeedFile, User and Token are different ways to log in: set one`,
			func(o *Options) { o.User, o.Token = "u", "t" }},
		{`option Password is set without User: set both or none`, func(o *Options) { o.Password = "p" }},
		{`option CredentialsFile: open /nowhere: no such file or directory`, func(o *Options) { o.CredentialsFile = "/nowhere" }},
		{`option CredentialsFile: /dev/null holds no user's JWT: make it with nsc generate creds`,
			func(o *Options) { o.CredentialsFile = "/dev/null" }},
		{`option NkeySeedFile: /dev/null: nkeys: no nkey seed found`, func(o *Options) { o.NkeySeedFile = "/dev/null" }},
		{`option TLS.CAFile: /dev/null holds no certificate in PEM form`, func(o *Options) { o.TLS = &TLS{CAFile: "/dev/null"} }},
		{`options TLS.CertFile and TLS.KeyFile belong together: set both or none`, func(o *Options) { o.TLS = &TLS{CertFile: "c"} }},
		{`option TLS.CertFile: open c: no such file or directory`, func(o *Options) { o.TLS = &TLS{CertFile: "c", KeyFile: "k"} }},
		{"option URL is empty: name a server, such as \"nats://host:4222\"\noption Replicas is -1: use 1 to 5",
			func(o *Options) { o.URL, o.Replicas = "", -1 }},
	} {
		options := Options{URL: "nats://h:4222", Stream: testStream, Subjects: []string{"k8s.>"}}
		test.change(&options)
		_, err := New(options)
		wantError(t, err, "configure nats sink: "+test.want)
	}
}

func TestSubjects(t *testing.T) {
	for _, test := range []struct {
		pattern, subject string
		want             bool
	}{
		{"k8s.>", "k8s.a", true}, {"k8s.>", "k8s.a.b", true}, {"k8s.>", "k8s", false}, {">", "k8s", true},
		{"k8s.*", "k8s.a", true}, {"k8s.*", "k8s.a.b", false}, {"k8s.*.b", "k8s.a.b", true}, {"k8s.a", "k8s.*", false},
		{"k8s.*", "k8s.*", true}, {"k8s.*", "k8s.>", false}, {"k8s.>", "k8s.*", true}, {"k8s.a", "k8s.b", false},
		{"k8s.a.b", "k8s.a", false},
	} {
		if got := covers(test.pattern, test.subject); got != test.want {
			t.Errorf("%q covers %q: got %v", test.pattern, test.subject, got)
		}
	}
}

func TestWithoutValue(t *testing.T) {
	for _, test := range []struct{ answer, want string }{
		{`{"message":{"subject":"a","hdrs":"TkFU","data":"e30=","time":"2026"}}`, `{"message":{"subject":"a","hdrs":"TkFU","data":"","time":"2026"}}`},
		{`{"message":{"data":"","subject":"a"}}`, `{"message":{"data":"","subject":"a"}}`},
		{`{"message":{"subject":"\"data\":\"","data":"e30="}}`, `{"message":{"subject":"\"data\":\"","data":""}}`},
		{`{"message":{"subject":"a"}}`, `{"message":{"subject":"a"}}`},
		{`{"message":{"data":"e30`, `{"message":{"data":"e30`},
		{``, ``},
	} {
		if got := string(withoutValue([]byte(test.answer))); got != test.want {
			t.Errorf("%s: got %s", test.answer, got)
		}
	}
}
