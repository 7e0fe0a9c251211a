package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubecdc/kubecdc/internal/format/typed"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinksLeadSomewhere follows each link within the project, to its heading where it names one.
func TestLinksLeadSomewhere(t *testing.T) {
	texts := pages(t)
	texts["DESIGN.md"] = string(contentOf(t, "DESIGN.md"))
	followed := 0
	for page, text := range texts {
		for _, m := range link.FindAllStringSubmatch(outsideOfBlocks(text), -1) {
			target, anchor, hasAnchor := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			at := path.Join(path.Dir(page), target)
			if target == "" {
				at = page
			}
			if _, err := os.Stat(filepath.Join(root, at)); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
			} else if hasAnchor && !slices.Contains(anchors(string(contentOf(t, at))), anchor) {
				t.Errorf("%s: %s leads to no heading", page, m[1])
			}
			followed++
		}
	}
	if followed < 60 {
		t.Errorf("only %d links were found", followed)
	}
}

// TestEveryPageIsInTheIndex looks for each page in docs/README.md.
func TestEveryPageIsInTheIndex(t *testing.T) {
	index := string(contentOf(t, "docs/README.md"))
	for page := range pages(t) {
		if name, isDoc := strings.CutPrefix(page, "docs/"); isDoc && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not lead to %s", name)
		}
	}
}

// TestEveryAlertHasItsSection follows the address of the runbook in each alert, of the chart and of the manifests.
func TestEveryAlertHasItsSection(t *testing.T) {
	const site = "https://github.com/kubecdc/kubecdc/blob/main/"
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `json:"alert"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(contentOf(t, "deploy/helm/kubecdc/files/alerts.yaml"), &rules); err != nil {
		t.Fatal(err)
	}
	alerts := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			alerts++
			page, anchor, _ := strings.Cut(strings.TrimPrefix(rule.Annotations["runbook_url"], site), "#")
			if page != "docs/operating.md" || anchor != strings.ToLower(rule.Alert) || !slices.Contains(anchors(string(contentOf(t, page))), anchor) {
				t.Errorf("%s: its runbook %q is no section of docs/operating.md", rule.Alert, rule.Annotations["runbook_url"])
			}
		}
	}
	if alerts == 0 {
		t.Fatal("no alert was found")
	}
	for _, m := range regexp.MustCompile(`(?m)^### (Kubecdc\w+)$`).FindAllStringSubmatch(string(contentOf(t, "docs/operating.md")), -1) {
		if !strings.Contains(string(contentOf(t, "deploy/helm/kubecdc/files/alerts.yaml")), "alert: "+m[1]+"\n") {
			t.Errorf("docs/operating.md: there is no alert %s", m[1])
		}
	}
}

// TestMetricsOfThePagesExist looks for each metric that a page names in the code that makes them. One such name is a
// field of Avro records.
func TestMetricsOfThePagesExist(t *testing.T) {
	code := ""
	for _, file := range []string{"metrics.go", "status.go", "telemetry.go", "fleet.go"} {
		code += string(contentOf(t, "internal/observe/telemetry/"+file))
	}
	for page, text := range pages(t) {
		for _, name := range regexp.MustCompile(`kubecdc_[a-z_]+[a-z]`).FindAllString(text, -1) {
			if name != typed.RestName && !strings.Contains(code, `"`+strings.TrimPrefix(name, "kubecdc_")+`"`) && !strings.Contains(code, `"`+name+`"`) {
				t.Errorf("%s: there is no metric %s", page, name)
			}
		}
	}
}

var named = regexp.MustCompile("\\[`(Test\\w+)`\\]\\(([^)]+)\\)|`(Test\\w+)`")

// TestPromisesNameTestsThatAreThere looks for each test that a page names in the file that the link leads to.
func TestPromisesNameTestsThatAreThere(t *testing.T) {
	all := declaredTests(t)
	found := map[string]int{}
	for page, text := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			found[page]++
			name, at := m[1]+m[3], ""
			if m[2] != "" {
				at = path.Join(path.Dir(page), m[2])
			}
			if files := all[name]; len(files) == 0 || at != "" && !slices.Contains(files, at) {
				t.Errorf("%s: test %s is not in %q; it is in %q", page, name, at, files)
			}
		}
	}
	if found["docs/delivery.md"] < 30 {
		t.Errorf("docs/delivery.md names %d tests", found["docs/delivery.md"])
	}
}

// declaredTests are the files of each test, by paths from the root.
func declaredTests(t *testing.T) map[string][]string {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		relative, _ := filepath.Rel(root, name)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			all[string(m[1])] = append(all[string(m[1])], filepath.ToSlash(relative))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// outsideOfBlocks is a page without its fenced blocks.
func outsideOfBlocks(text string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(text, "")
}

// anchors are the headings as GitHub links to them.
func anchors(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(outsideOfBlocks(text), -1) {
		keep := func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
				return r
			}
			return -1
		}
		all = append(all, strings.Map(keep, strings.ToLower(m[1])))
	}
	return all
}
