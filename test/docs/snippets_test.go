package docs

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// TestSnippetsAreWhatTheyLookLike holds every block that is no command.
func TestSnippetsAreWhatTheyLookLike(t *testing.T) {
	held := map[string]int{}
	for page, text := range pages(t) {
		for _, b := range blocks(t, page, text) {
			held[b.language]++
			problem := ""
			switch {
			case b.notes["golden"] != "":
				problem = notTheGolden(&b)
			case b.is("yaml"):
				problem = wrongYAML(t, b.text)
			case b.is("json"):
				problem = wrongJSON(b.text)
			case b.is("python"):
				problem = wrongPython(t, b.text)
			case b.is("properties"), b.is("sql") && strings.Contains(b.text, "TUMBLE"): // test/consumers runs them
			case b.is("sql"):
				problem = otherSQL(t, b.text)
			case b.is("mermaid"): // a picture, which the reader draws
			case b.is("sh", "console", ""):
			default:
				problem = "nobody knows what a block of " + b.language + " is"
			}
			if problem != "" {
				t.Errorf("%s:%d: %s", page, b.line, problem)
			}
		}
	}
	for _, language := range []string{"yaml", "json", "python", "sql", "console"} {
		if held[language] == 0 {
			t.Errorf("there is no block of %s in %v", language, held)
		}
	}
}

// continued is where a line is broken for the eye: the next one begins with a space.
var continued = regexp.MustCompile(`\n +`)

// notTheGolden says whether a message is another one than the encoder's tests have.
func notTheGolden(b *block) string {
	want, err := os.ReadFile(filepath.Join(root, "internal/format/encode/testdata", b.notes["golden"]))
	if err != nil {
		return err.Error()
	}
	if strings.TrimSpace(string(want)) != strings.TrimSpace(continued.ReplaceAllString(b.text, "")) {
		return "the encoder writes another message:\n" + string(want)
	}
	return ""
}

// wrongYAML takes values of the chart, configurations, parts of them, and entries of their lists.
func wrongYAML(t *testing.T, text string) string {
	t.Helper()
	var keys map[string]any
	if err := yaml.Unmarshal([]byte(text), &keys); err != nil {
		return wrongEntries(text)
	}
	if _, ok := keys["config"]; ok {
		return wrongValues(t, keys)
	}
	return wrongConfig(text)
}

// wrongEntries puts entries into their list, which their keys tell.
func wrongEntries(text string) string {
	list := "resources"
	if regexp.MustCompile(`\b(kafka|nats|file): \{`).MatchString(text) {
		list = "sinks"
		text += "\nresources: [pods, events]"
	}
	return wrongConfig(list + ":\n" + text)
}

// wrongConfig reads it as the exporter does; where it has all that is needed, all of it has to fit.
func wrongConfig(text string) string {
	c, err := config.Parse("snippet", []byte(text), func(string) (string, bool) { return "value", true })
	if err == nil && len(c.Resources) > 0 && len(c.Sinks) > 0 {
		err = c.Validate()
	}
	if err != nil {
		return err.Error()
	}
	for _, r := range c.Resources {
		rules := transform.Rules{Drop: r.Drop, Keep: r.Only, Redact: r.Redact.Paths, Env: r.RedactEnv}
		if _, err := shape.New(shape.Options{Filter: r.Filter, Before: r.Before, Rules: rules, Key: transform.Key{Secret: []byte("any")}}); err != nil {
			return r.Name + ": " + err.Error()
		}
	}
	return ""
}

// wrongValues holds values against the chart's schema, laid over those that the chart has, as Helm does.
func wrongValues(t *testing.T, over map[string]any) string {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal(contentOf(t, "deploy/helm/kubecdc/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	lay(values, over)
	compiler := jsonschema.NewCompiler()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(contentOf(t, "deploy/helm/kubecdc/values.schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("urn:values", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("urn:values")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(values); err != nil {
		return err.Error()
	}
	nameFiles(values)
	text, err := yaml.Marshal(values["config"])
	if err != nil {
		t.Fatal(err)
	}
	return wrongConfig(string(text))
}

// nameFiles names the files of audit.secret in the configuration, as the chart does.
func nameFiles(values map[string]any) {
	audit, configured := values["config"].(map[string]any)["audit"].(map[string]any)
	if secret := values["audit"].(map[string]any)["secret"]; !configured || secret == "" {
		return
	}
	const dir = "/etc/kubecdc/audit/"
	files := map[string]any{"tls": map[string]any{"cert": dir + "tls.crt", "key": dir + "tls.key"}, "clientCA": dir + "ca.crt"}
	lay(files, audit)
	lay(audit, files)
}

// lay puts values over others: mappings key by key, everything else whole.
func lay(values, over map[string]any) {
	for key, value := range over {
		below, isMap := values[key].(map[string]any)
		if more, both := value.(map[string]any); isMap && both {
			lay(below, more)
		} else {
			values[key] = value
		}
	}
}

// wrongJSON takes one value, which may be spread over lines for the eye.
func wrongJSON(text string) string {
	if !json.Valid([]byte(text)) {
		return "this is no JSON"
	}
	return ""
}

// wrongPython has it compiled, where a Python is.
func wrongPython(t *testing.T, text string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("no python3 is here: programs in it are not compiled")
		return ""
	}
	cmd := exec.Command(python, "-c", "import sys; compile(sys.stdin.read(), 'snippet', 'exec')")
	cmd.Stdin = strings.NewReader(text)
	if output, err := cmd.CombinedOutput(); err != nil {
		return string(output)
	}
	return ""
}

// otherSQL finds columns and options that the job does not have that the tests run in Flink.
func otherSQL(t *testing.T, text string) string {
	t.Helper()
	job := regexp.MustCompile(`"\s*\+\s*"|\s+`).ReplaceAllString(string(contentOf(t, "test/consumers/java/Flink.java")), " ")
	for _, part := range regexp.MustCompile(`'[\w.-]+' = '[^']+'|(?m)^  \w.*$`).FindAllString(text, -1) {
		part = strings.Trim(part, " ,")
		if strings.HasPrefix(part, "'topic'") || strings.HasPrefix(part, "'properties.bootstrap.servers'") {
			continue // the reader's own
		}
		if !strings.Contains(job, part) {
			return "the job that the tests run in Flink does not have: " + part
		}
	}
	return ""
}

func contentOf(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
