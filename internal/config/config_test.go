package config

import (
	"path/filepath"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestGoldenOfFiles(t *testing.T) {
	for name, path := range map[string]string{
		"design":  "testdata/design.yaml",
		"example": "../../deploy/config.example.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Load(path, testEnv)
			must(t, err)
			must(t, c.Validate())
			same(t, c, filepath.Join("testdata", name+".golden"))
		})
	}
}

// What is shown of a configuration is one, and the same, but for the secrets.
func TestEffectiveConfigurationParses(t *testing.T) {
	c, err := Load("../../deploy/config.example.yaml", testEnv)
	must(t, err)
	shown, err := yaml.Marshal(show(reflect.ValueOf(c).Elem()))
	must(t, err)
	again := parse(t, string(shown))
	c.Sinks[0].NATS.Password = masked
	c.origin, again.origin = origin{}, origin{}
	if !reflect.DeepEqual(c, again) {
		t.Errorf("have\n%+v\nwant\n%+v", again, c)
	}
}

func TestDefaults(t *testing.T) {
	c := parse(t, "resources: [pods]\nsinks: [{nats: {url: 'nats://h'}}, {file: {path: /f}}, {file: {path: '-'}}]\n")
	must(t, c.Validate())
	same(t, c, "testdata/defaults.golden")
	before := *c
	c.Default()
	if !reflect.DeepEqual(&before, c) {
		t.Error("Default changed what it had filled in")
	}
}

func TestNullsAreNotSet(t *testing.T) {
	c := parse(t, "cluster:\nresources: ~\nsinks: null\nstate:\nlisten:\nlog: {level: }\n")
	want := new(Config)
	want.Default()
	c.origin = origin{}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("have %+v, want %+v", c, want)
	}
}

func TestAliasesAreFollowed(t *testing.T) {
	c := parse(t, "resources: [&p pods, jobs.batch]\nsinks: [{file: {path: '-'}, resources: [*p]}]\n")
	if got := c.Sinks[0].Resources[0]; got != "pods" {
		t.Errorf("have %q", got)
	}
}

func TestEnvironmentCannotBreakYAML(t *testing.T) {
	c := parse(t, `sinks: [{nats: {url: 'nats://h', user: "x${YAML}y", password: "${DOLLAR}", stream: "${EMPTY}"}}]`)
	n := c.Sinks[0].NATS
	if n.User != "xa: [b\n- cy" || n.Password.Reveal() != "${NATS_TOKEN}" || n.Stream != "K8S_{cluster}" {
		t.Errorf("have %q, %q, %q", n.User, n.Password.Reveal(), n.Stream)
	}
}

func TestEnvironmentEscape(t *testing.T) {
	for text, want := range map[string]string{
		"plain $HOME $ $$":     "plain $HOME $ $$",
		"$${NATS_TOKEN}":       "${NATS_TOKEN}",
		"a$${b${QUEUE}c":       "a${b32Mic",
		"${QUEUE}${QUEUE}":     "32Mi32Mi",
		"$${":                  "${",
		"${EMPTY}":             "",
		"${QUEUE}$${${QUEUE}}": "32Mi${32Mi}",
	} {
		got, err := expand(text, testEnv)
		if err != nil || got != want {
			t.Errorf("%s: have %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestLoginLeavesURL(t *testing.T) {
	for url, want := range map[string]NATS{
		"nats://u:p%40@h:4222":         {URL: "nats://h:4222", NATSLogin: NATSLogin{User: "u", Password: "p@"}},
		"nats://u:p@a:1,nats://u:p@b":  {URL: "nats://a:1,nats://b", NATSLogin: NATSLogin{User: "u", Password: "p"}},
		"tls://u:p@a:1, b:2":           {URL: "tls://a:1,tls://b:2", NATSLogin: NATSLogin{User: "u", Password: "p"}},
		"nats://hunter@h":              {URL: "nats://h", NATSLogin: NATSLogin{Token: "hunter"}},
		"nats://[::1]:4222,nats://b:1": {URL: "nats://[::1]:4222,nats://b:1"},
	} {
		c := parse(t, "sinks: [{nats: {url: '"+url+"'}}]")
		n := c.Sinks[0].NATS
		if n.URL != want.URL || n.User != want.User || n.Password != want.Password || n.Token != want.Token {
			t.Errorf("%s: have %q %q %q %q", url, n.URL, n.User, n.Password.Reveal(), n.Token.Reveal())
		}
	}
}
