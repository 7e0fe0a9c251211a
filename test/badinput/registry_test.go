package badinput

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// registryThat answers everything in one way.
func registryThat(t *testing.T, status int, says string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, says) // the client reads it, or fails
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// strict is a registry that has the schema as the one version of every subject, and takes no other.
func strict(t *testing.T, schema string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/compatibility/") {
			fmt.Fprint(w, `{"is_compatible":false,"messages":["field size is of another type"]}`)
			return
		}
		fmt.Fprintf(w, `{"subject":"s","version":4,"id":7,"schema":%q}`, schema)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// registryConfig is of a sink with a registry.
func registryConfig(broker, registry string) string {
	return with(fmt.Sprintf("sinks: [{name: lake, format: object, kafka: {brokers: [%q], registry: {%s}}}]\n", broker, registry))
}

// registryKeys are mistakes with a registry's keys that the text alone shows.
func registryKeys() []mistake {
	of := func(registry string) string { return registryConfig("x:9092", registry) }
	at := "sinks[0].kafka.registry"
	return []mistake{
		{"a registry without an address", "", of("as: avro"), at + ".url (line 2): missing; want an address such as http://registry:8081"},
		{"a registry that is no URL", "", of("url: 'registry:8081'"), at + ".url (line 2): want http://HOST:PORT or https://HOST:PORT, perhaps with a path"},
		{"a login in a registry's address", "", of("url: 'http://me:secret@r'"), at + ".url (line 2): a login is not part of it; write it as user and password"},
		{"half of a login of a registry", "", of("url: 'http://r', user: me"), at + " (line 2): user and password go together; give both or neither"},
		{"two logins of a registry", "", of("url: 'http://r', user: me, password: p, token: t"), at + ".token (line 2): a token here and a user; leave one out"},
		{"half of a certificate of a registry", "", of("url: 'http://r', tls: {cert: a.crt}"), at + ".tls (line 2): cert and key go together; give both or neither"},
		{"a subject that there is not", "", of("url: 'http://r', subject: name"), at + `.subject (line 2): unknown value "name"; allowed: topic, record, topic-record`},
		{"a compatibility that there is not", "", of("url: 'http://r', compatibility: some"), at + `.compatibility (line 2): unknown value "some"; allowed: backward, `},
		{"no word for register", "", of("url: 'http://r', register: maybe"), at + ".register (line 2): want true or false"},
		{"a misspelt key of a registry", "", of("url: 'http://r', subjects: record"), at + ".subjects (line 2): unknown key; did you mean subject?"},
		{"a format that can have no schema", "", strings.Replace(of("url: 'http://r'"), "object", "cloudevents", 1),
			at + " (line 2): the format cloudevents is JSON as a whole, so that nothing can come before it; choose one of "},
		{"patches with a schema", "", strings.Replace(kept(strings.TrimPrefix(of("url: 'http://r'"), with(""))), "format: object", "format: cloudevents-binary, updates: patch", 1),
			"a value with a schema is a whole object"},
	}
}

// registries are mistakes that a registry shows. Its words are told, with the subject.
func registries(t *testing.T, broker string) []mistake {
	of := func(url, more string) string { return registryConfig(broker, "url: '"+url+"'"+more) }
	begins := "problem  sink lake: resource configmaps: schema registry: "
	reads := begins + "read subject k8s.dev.configmaps-value: "
	return []mistake{
		{"a registry that is not there", "", of("http://127.0.0.1:1", ""), reads + "it does not answer: "},
		{"a registry's login that is wrong", "", of(registryThat(t, 401, `{"error_code":401,"message":"Unauthorized"}`), ", user: me, password: wrong"),
			reads + "status 401: Unauthorized: correct user, password or token in kafka.registry"},
		{"a user whom a registry allows nothing", "", of(registryThat(t, 403, `{"error_code":40301,"message":"denied"}`), ""),
			reads + "status 403: denied: allow the exporter's user to read and to write the subject, or set register: false"},
		{"a path that is no registry's", "", of(registryThat(t, 404, "404 page not found"), ""),
			reads + "status 404: 404 page not found: is kafka.registry.url the path of the API of Confluent's registry?"},
		{"a registry that is ill", "", of(registryThat(t, 500, `{"error_code":50001,"message":"its store is away"}`), ""), reads + "status 500: its store is away"},
		{"a subject of somebody else", "", of(strict(t, `{"type":"record","name":"A","fields":[]}`), ""),
			reads + "its newest version is not the exporter's: choose another kafka.registry.subject, another topic, or delete the subject"},
		{"a subject of another form", "", of(strict(t, `{"$schema":"http://json-schema.org/draft-07/schema#"}`), ""), "it is no schema of kubecdc"},
		{"a version that a registry refuses", "", of(strict(t, `{"type":"record","name":"A","fields":[{"name":"kubecdc_rest","type":["null","string"]}]}`), ""),
			begins + "look whether a new version of subject k8s.dev.configmaps-value is compatible: field size is of another type: a new version would be incompatible"},
		{"a registry and no cluster", "--context staging -f config.yaml", of(registryThat(t, 401, ""), ""), `problem  load the kubeconfig: it has no context "staging"`},
		{"nothing registered and register: false", "", of(registryThat(t, 404, `{"error_code":40401,"message":"no such subject"}`), ", register: false"),
			reads + "it has no version: register what `exporter schema show` prints with --sink, or set register: true"},
	}
}
