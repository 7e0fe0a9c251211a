package nats

import (
	"slices"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

func TestNewNamesTheField(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(*Options)
	}{
		{`nats.domain is "a b": a domain has no dots, wildcards and spaces`, func(o *Options) { o.Domain = "a b" }},
		{`nats.maxAge is 1ms: use 1s or more, or 0 for ever`, func(o *Options) { o.MaxAge = time.Millisecond }},
		{`nats.credentials: open /nowhere: no such file or directory`, func(o *Options) { o.CredentialsFile = "/nowhere" }},
		{`nats.credentials: /dev/null holds no user's JWT: make it with nsc generate creds`,
			func(o *Options) { o.CredentialsFile = "/dev/null" }},
		{`nats.nkey: /dev/null: nkeys: no nkey seed found`, func(o *Options) { o.NkeySeedFile = "/dev/null" }},
		{`nats.tls.ca: /dev/null holds no certificate in PEM form`, func(o *Options) { o.TLS = &sink.TLS{CAFile: "/dev/null"} }},
		{`nats.tls.cert and nats.tls.key belong together: set both or none`, func(o *Options) { o.TLS = &sink.TLS{CertFile: "c"} }},
		{`nats.tls.cert and nats.tls.key: open c: no such file or directory`, func(o *Options) { o.TLS = &sink.TLS{CertFile: "c", KeyFile: "k"} }},
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

func TestValidSubjects(t *testing.T) {
	for _, text := range []string{"a", "a.b", "a*.>b", "$KV.B.a_b=2E", "a*b", "a>"} {
		if !validSubject(text) {
			t.Errorf("%q is refused", text)
		}
	}
	for _, text := range []string{"", ".a", "a.", "a..b", "*", "a.*.b", "a.>", ">.a", "a b", "a.\x7f"} {
		if validSubject(text) {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestFiltersCoverEachOtherNever(t *testing.T) {
	for _, c := range []struct{ patterns, want []string }{
		{[]string{"k.*.*"}, []string{"k.*.*"}},
		{[]string{"k.*.*", "k.pods.*"}, []string{"k.*.*"}},
		{[]string{"k.pods.*", "k.jobs.*", "k.*.*"}, []string{"k.*.*"}},
		{[]string{"k.*.*", "audit.*", "audit.*"}, []string{"k.*.*", "audit.*"}},
		{[]string{"k.*", "k.a.*"}, []string{"k.*", "k.a.*"}},
	} {
		if got := Filters(c.patterns...); !slices.Equal(got, c.want) {
			t.Errorf("filters of %q are %q, want %q", c.patterns, got, c.want)
		}
	}
}
