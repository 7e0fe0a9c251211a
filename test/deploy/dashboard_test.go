package deploy

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/util/teststorage"

	"github.com/kubecdc/kubecdc/test/authority"
	"github.com/kubecdc/kubecdc/test/deploy/generated"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

// query is one of the dashboard's, with its variables replaced as Grafana would for "All".
type query struct {
	panel, expr string
	instant     bool
}

type panel struct {
	ID          int
	Type, Title string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		Expr    string
		Instant bool
	}
}

type dashboard struct {
	UID, Title string
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, generated.Chart, "files", "dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *dashboard) queries() []query {
	all := strings.NewReplacer("$__rate_interval", "2m", "$__range", "10m", "$__interval", "1m", "$job", ".*", "$instance", ".*", "$sink", ".*", "$resource", ".*")
	var queries []query
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			queries = append(queries, query{p.Title, all.Replace(target.Expr), target.Instant})
		}
	}
	for _, a := range d.Annotations.List {
		queries = append(queries, query{"annotation " + a.Name, all.Replace(a.Expr), false})
	}
	return queries
}

// samples is how many scrapes Prometheus has seen; before the newest ones something happened.
const samples, newest, interval = 40, 4, 15 * time.Second

// TestDashboardIsAnswered: each of its queries is one for Prometheus, and has an answer from what a real exporter says
// about itself, to which everything happens that it counts.
func TestDashboardIsAnswered(t *testing.T) {
	before, after := scrapeTroubled(t)
	checkMetrics(t, after)
	store := stored(t, before, after)
	engine := promqltest.NewTestEngine(t, false, 0, 1e6)
	end := time.Unix(0, 0).Add((samples - 1) * interval)
	d := readDashboard(t)
	for _, q := range d.queries() {
		if _, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr); err != nil {
			t.Errorf("%s: %v", q.panel, err)
			continue
		}
		answer := ask(t, engine, store, q, end)
		if answer.Err != nil || answer.Value == nil {
			t.Errorf("%s: %s: %v", q.panel, q.expr, answer.Err)
		} else if count(answer.Value) == 0 && !strings.HasPrefix(q.panel, "annotation") {
			t.Errorf("%s: %s has no answer", q.panel, q.expr)
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			checkVariable(t, after, v.Definition)
		}
	}
}

func ask(t *testing.T, engine *promql.Engine, store *teststorage.TestStorage, q query, end time.Time) *promql.Result {
	t.Helper()
	var prepared promql.Query
	var err error
	if q.instant {
		prepared, err = engine.NewInstantQuery(t.Context(), store, nil, q.expr, end)
	} else {
		prepared, err = engine.NewRangeQuery(t.Context(), store, nil, q.expr, end.Add(-2*time.Minute), end, interval)
	}
	if err != nil {
		t.Fatalf("%s: %v", q.panel, err)
	}
	return prepared.Exec(t.Context())
}

// count is how many series the answer has, whose values are numbers.
func count(value parser.Value) int {
	n := 0
	switch v := value.(type) {
	case promql.Vector:
		for _, sample := range v {
			if sample.F == sample.F {
				n++
			}
		}
	case promql.Matrix:
		for _, series := range v {
			if slices.ContainsFunc(series.Floats, func(p promql.FPoint) bool { return p.F == p.F }) {
				n++
			}
		}
	}
	return n
}

// checkVariable looks for the series that a variable's values come from.
func checkVariable(t *testing.T, scraped, definition string) {
	t.Helper()
	found := regexp.MustCompile(`^label_values\((\w+)(?:\{.*\})?, (\w+)\)$`).FindStringSubmatch(definition)
	if found == nil {
		t.Errorf("variable %s: not understood", definition)
		return
	}
	if label := found[2]; label != "job" && label != "instance" && !regexp.MustCompile(`(?m)^`+found[1]+`\{.*\b`+label+`="`).MatchString(scraped) {
		t.Errorf("variable %s: no such series", definition)
	}
}

// ofMembers are the metrics of exporters that share a task, or that follow several clusters. One that runs alone has
// none of them.
func ofMembers() []string {
	return []string{"kubecdc_task_up", "kubecdc_tasks_unowned", "kubecdc_leader", "kubecdc_standby_lag_seconds", "kubecdc_takeovers_total"}
}

// checkMetrics finds names in dashboard and alerts that the exporter has not.
func checkMetrics(t *testing.T, scraped string) {
	t.Helper()
	var exprs []string
	d := readDashboard(t)
	for _, q := range d.queries() {
		exprs = append(exprs, q.expr)
	}
	for _, rule := range alerts(t) {
		exprs = append(exprs, rule.Expr)
	}
	used := map[string]bool{}
	for _, expr := range exprs {
		for _, name := range metricsOf(t, expr) {
			used[name] = true
			if slices.Contains(ofMembers(), name) {
				continue
			}
			if !regexp.MustCompile(`(?m)^` + name + `[ {]`).MatchString(scraped) {
				t.Errorf("/metrics has no %s, of %s", name, expr)
			}
		}
	}
	if len(used) < 20 {
		t.Errorf("only %d metrics are used", len(used))
	}
}

func metricsOf(t *testing.T, expr string) []string {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return nil
	}
	var names []string
	for _, selectors := range parser.ExtractSelectors(parsed) {
		for _, matcher := range selectors {
			if matcher.Name == model.MetricNameLabel {
				names = append(names, matcher.Value)
			}
		}
	}
	return names
}

// stored is a Prometheus that scraped the first text, and the second text the newest few times.
func stored(t *testing.T, before, after string) *teststorage.TestStorage {
	t.Helper()
	values := map[string][2]string{}
	for i, text := range []string{before, after} {
		for _, line := range regexp.MustCompile(`(?m)^([a-z]\w*)(?:\{(.*)\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
			series := line[1] + `{job="kubecdc",instance="a"` + strings.TrimSuffix(","+line[2], ",") + `}`
			pair := values[series]
			pair[i] = line[3]
			values[series] = pair
		}
	}
	load := "load " + interval.String()
	for series, pair := range values {
		load += "\n  " + series
		for i := range samples {
			value := pair[min(i/(samples-newest), 1)]
			if value == "" {
				value = "_"
			}
			load += " " + value
		}
	}
	return promqltest.LoadedStorage(t, load)
}

// scrapeTroubled runs an exporter to which everything happens that it counts, and returns what /metrics says before the
// last changes and after them.
func scrapeTroubled(t *testing.T) (before, after string) {
	t.Helper()
	namespace, broker := newNamespace(t), natsserver.Start(t)
	dir := t.TempDir()
	out, state := filepath.Join(dir, "out.ndjson"), filepath.Join(dir, "state")
	path := filepath.Join(dir, "config.yaml")
	ca := authority.New(t, dir, "ca")
	cert, key := ca.Pair("exporter")
	write(t, path, fmt.Sprintf(`
resources:
  - {resource: configmaps, filter: 'object.data.absent != "x"'}
  - serviceaccounts
sinks:
  - {name: out, file: {path: %q}, actors: true}
  - {name: bus, nats: {url: %q}}
state: {dir: %q, log: {sink: bus}}
audit: {listen: "127.0.0.1:0", tls: {cert: %q, key: %q}, clientCA: %q}
`, out, broker.URL(), state, cert, key, ca.File))
	args := []string{"-f", path, "--kubeconfig", shared.Get(t).Kubeconfig()}

	// What happens to an account while no watch looks, and the position is moved over it, is drift.
	x := start(t, args...)
	x.logs("msg=\"snapshot complete\"", "reason=initial")
	x.logs("msg=watching")
	create(t, namespace, "ConfigMap", "first")
	lineWith(t, out, namespace+"/configmaps/first")
	x.stop()
	broker.Stop()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "unseen"}}
	made, err := admin(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if said, code := command(t, "checkpoint", "set", "--state-dir", state, "--stream", "serviceaccounts", "--resource-version", made.ResourceVersion); code != 0 {
		t.Fatal(said)
	}

	// The broker is away when the exporter starts, and refuses a message that is larger than it takes.
	x = start(t, args...)
	metric(t, x, `kubecdc_sink_retries_total`)
	broker.Restart(t)
	x.logs("msg=watching")
	if said, code := command(t, "snapshot", "--state-dir", state, "--resources", "serviceaccounts", "--wait"); code != 0 {
		t.Fatal(said)
	}
	large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"quotes": strings.Repeat(`"`, 600_000)}}
	if _, err := admin(t).CoreV1().ConfigMaps(namespace).Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kubecdc_sink_rejected_total", "kubecdc_source_gaps_total", "kubecdc_source_misshapen_total", "kubecdc_corrections_total", "kubecdc_position_age_seconds"} {
		before = metric(t, x, name)
	}
	create(t, namespace, "ConfigMap", "last")
	lineWith(t, out, namespace+"/configmaps/last")
	counters := []*regexp.Regexp{
		regexp.MustCompile(`kubecdc_sink_records_total\{cluster="[^"]*",resource="configmaps",sink="bus"\} (\d+)`),
		regexp.MustCompile(`kubecdc_commit_seconds_count\{[^}]*\} (\d+)`),
	}
	eventually(t, "the sinks have written more, and it is saved", func() bool {
		after = string(x.get("/metrics"))
		return !slices.ContainsFunc(counters, func(counter *regexp.Regexp) bool {
			was, is := counter.FindStringSubmatch(before), counter.FindStringSubmatch(after)
			return was == nil || is == nil || was[1] == is[1]
		})
	})
	x.stop()
	return before, after
}

// metric waits until the exporter counts it, and returns all that it says then.
func metric(t *testing.T, x *exporter, name string) (scraped string) {
	t.Helper()
	eventually(t, "the exporter has "+name+"; it says:\n"+x.Said(), func() bool {
		scraped = string(x.get("/metrics"))
		return strings.Contains(scraped, "\n"+name+"{")
	})
	return scraped
}

// TestDashboardHasNoOverlaps, each panel says what it shows, and each of the four questions has its row.
func TestDashboardHasNoOverlaps(t *testing.T) {
	d := readDashboard(t)
	var rows []string
	for i, p := range d.Panels {
		if p.Type == "row" {
			rows = append(rows, p.Title)
		} else if p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %s has no description or no query", p.Title)
		}
		for _, q := range d.Panels[:i] {
			a, b := p.GridPos, q.GridPos
			if p.ID == q.ID || a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("panels %s and %s are in one place, or have one id", p.Title, q.Title)
			}
		}
	}
	if want := []string{"Am I losing data?", "Am I late?", "Which sink?", "Which resource?", "The process"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
}
