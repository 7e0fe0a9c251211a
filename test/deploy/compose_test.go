package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	prometheus "github.com/prometheus/prometheus/config"
	"sigs.k8s.io/yaml"

	"github.com/kubecdc/kubecdc/internal/config"
)

// compose is the project as Compose reads it, with the kubeconfig where it is by default.
func compose(t *testing.T, env ...string) *types.Project {
	t.Helper()
	return composeOf(t, env)
}

// composeOf is the project with more files.
func composeOf(t *testing.T, env []string, more ...string) *types.Project {
	t.Helper()
	files := []string{filepath.Join(root, "docker-compose.yaml")}
	for _, file := range more {
		files = append(files, filepath.Join(root, file))
	}
	options, err := cli.NewProjectOptions(files, cli.WithEnv(append([]string{"HOME=/home/me"}, env...)))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// haFile has a second exporter.
const haFile = "deploy/compose/ha.yaml"

// tasksFile has three exporters, and a second cluster.
const tasksFile = "deploy/compose/tasks.yaml"

// TestComposeFile is read by Compose's own library, which refuses unknown keys and wrong values. Each service has a
// pinned image and says when it is well, what is waited for is waited for until then, and nothing listens for other
// hosts.
func TestComposeFile(t *testing.T) {
	for _, c := range []struct {
		project   *types.Project
		services  []string
		exporters []string
	}{
		{compose(t), []string{"exporter", "grafana", "kafka", "nats", "prometheus"}, []string{"exporter"}},
		{composeOf(t, nil, haFile), []string{"exporter", "grafana", "kafka", "nats", "prometheus", "standby"}, []string{"exporter", "standby"}},
		{composeOf(t, nil, tasksFile), []string{"exporter", "grafana", "kafka", "nats", "prometheus", "second", "third"}, []string{"exporter", "second", "third"}},
	} {
		if !slices.Equal(c.project.ServiceNames(), c.services) {
			t.Errorf("services %q, want %q", c.project.ServiceNames(), c.services)
		}
		for name, service := range c.project.Services {
			checkService(t, name, service)
		}
		for _, name := range c.exporters {
			checkRights(t, name, c.project.Services[name])
		}
	}
}

func checkService(t *testing.T, name string, service types.ServiceConfig) {
	t.Helper()
	if !regexp.MustCompile(`:v?\d+(\.\d+)+(-\w+)?$`).MatchString(service.Image) && service.Build == nil {
		t.Errorf("%s: image %s is not pinned", name, service.Image)
	}
	if service.HealthCheck == nil || len(service.HealthCheck.Test) < 2 {
		t.Errorf("%s does not say when it is well", name)
	}
	for on, dependency := range service.DependsOn {
		if dependency.Condition != types.ServiceConditionHealthy {
			t.Errorf("%s does not wait until %s is well", name, on)
		}
	}
	for _, port := range service.Ports {
		if port.HostIP != "127.0.0.1" {
			t.Errorf("%s: port %d is open to other hosts", name, port.Target)
		}
	}
	checkMounts(t, name, service.Volumes)
}

// checkRights looks at a service that runs the exporter.
func checkRights(t *testing.T, name string, exporter types.ServiceConfig) {
	t.Helper()
	for _, broker := range []string{"kafka", "nats"} {
		if _, waits := exporter.DependsOn[broker]; !waits {
			t.Errorf("%s does not wait for %s", name, broker)
		}
	}
	if !exporter.ReadOnly || exporter.Privileged || !slices.Equal(exporter.CapDrop, []string{"ALL"}) {
		t.Errorf("%s has more rights than it needs", name)
	}
}

// TestI10ComposeHasTwoExportersOfOneTask: they have the configuration in common, and neither an address nor a state.
func TestI10ComposeHasTwoExportersOfOneTask(t *testing.T) {
	project := composeOf(t, nil, haFile)
	first, second := project.Services["exporter"], project.Services["standby"]
	if a, b := source(first, first.Command[2]), source(second, second.Command[2]); a != b || filepath.Base(a) != "exporter-ha.yaml" {
		t.Errorf("the configurations are %s and %s", a, b)
	}
	c := parseFile(t, "deploy", "compose", "exporter-ha.yaml")
	if c.HA == nil || c.HA.Lease == "" {
		t.Error("they share no Lease")
	}
	if a, b := source(first, c.State.Dir), source(second, c.State.Dir); a == b || a == "" || b == "" {
		t.Errorf("the states are %q and %q", a, b)
	}
	scraped := read(t, "deploy", "compose", "prometheus-ha.yaml")
	if listen := second.Command[4]; listen == c.Listen || !strings.Contains(scraped, `"`+listen+`"`) || !strings.Contains(scraped, `"`+c.Listen+`"`) {
		t.Errorf("they listen on %s and %s, and Prometheus has\n%s", c.Listen, listen, scraped)
	}
	prometheus := project.Services["prometheus"]
	if filepath.Base(source(prometheus, "/etc/prometheus/prometheus.yaml")) != "prometheus-ha.yaml" {
		t.Error("Prometheus scrapes one of them only")
	}
}

// TestI10ComposeHasThreeExportersOfFourTasks, each with a state and an address of its own.
func TestI10ComposeHasThreeExportersOfFourTasks(t *testing.T) {
	project, c := composeOf(t, nil, tasksFile), parseFile(t, "deploy", "compose", "exporter-tasks.yaml")
	states, scraped := map[string]bool{}, read(t, "deploy", "compose", "prometheus-tasks.yaml")
	for _, name := range []string{"exporter", "second", "third"} {
		x, listen := project.Services[name], c.Listen
		if len(x.Command) == 5 {
			listen = x.Command[4]
		}
		if config := source(x, x.Command[2]); filepath.Base(config) != "exporter-tasks.yaml" || !strings.Contains(scraped, `"`+listen+`"`) {
			t.Errorf("%s has the configuration %s, and listens on %s", name, config, listen)
		}
		states[source(x, c.State.Dir)] = true
	}
	if tasks := len(c.AllTasks()); tasks != 4 || len(states) != 3 || states[""] {
		t.Errorf("%d tasks, and the states %v", tasks, states)
	}
}

// source is what the service has mounted at the path.
func source(service types.ServiceConfig, path string) string {
	for _, volume := range service.Volumes {
		if volume.Target == path {
			return volume.Source
		}
	}
	return ""
}

// parseFile is a configuration that the exporter takes.
func parseFile(t *testing.T, path ...string) *config.Config {
	t.Helper()
	c, err := config.Parse(path[len(path)-1], []byte(read(t, path...)), os.LookupEnv)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkMounts looks for what is mounted from the project.
func checkMounts(t *testing.T, service string, volumes []types.ServiceVolumeConfig) {
	t.Helper()
	for _, volume := range volumes {
		if volume.Type != types.VolumeTypeBind || strings.HasPrefix(volume.Target, "/kubeconfig") {
			continue
		}
		if _, err := os.Stat(volume.Source); err != nil || !volume.ReadOnly {
			t.Errorf("%s: %s: read only %t, %v", service, volume.Source, volume.ReadOnly, err)
		}
	}
}

// TestComposeTakesTheUsersKubeconfig, the one that kubectl takes.
func TestComposeTakesTheUsersKubeconfig(t *testing.T) {
	for want, env := range map[string][]string{"/home/me/.kube/config": nil, "/tmp/mine": {"KUBECONFIG=/tmp/mine"}} {
		exporter := compose(t, env...).Services["exporter"]
		if got := exporter.Volumes[0].Source; got != want || *exporter.Environment["KUBECONFIG"] != exporter.Volumes[0].Target {
			t.Errorf("kubeconfig %s, want %s", got, want)
		}
	}
}

// TestComposeHasTheVersionsThatAreTested: brokers and Prometheus are those of the tests.
func TestComposeHasTheVersionsThatAreTested(t *testing.T) {
	version := func(file, pattern string) string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
		if found == nil {
			t.Fatalf("no %s in %s", pattern, file)
		}
		return found[1]
	}
	project := compose(t)
	for service, want := range map[string]string{
		"nats":       "nats:" + version("go.mod", `nats-io/nats-server/v2 v(\S+)`) + "-alpine",
		"prometheus": "prom/prometheus:v3." + version("test/deploy/go.mod", `prometheus/prometheus v0\.3(\S+)`),
		"kafka":      "apache/kafka:" + version("test/kafka/java/pom.xml", `<kafka\.version>([0-9.]+)</kafka\.version>`),
	} {
		if got := project.Services[service].Image; got != want {
			t.Errorf("image %s, tested is %s", got, want)
		}
	}
}

// TestComposeFilesFit: the exporter takes its configuration, Prometheus its own with the alerts, and Grafana finds
// both.
func TestComposeFilesFit(t *testing.T) {
	c := parseFile(t, "deploy", "compose", "exporter.yaml")
	scrapes, err := prometheus.Load(read(t, "deploy", "compose", "prometheus.yaml"), silent())
	if err != nil {
		t.Fatal(err)
	}
	if text := read(t, "deploy", "compose", "prometheus.yaml"); len(scrapes.ScrapeConfigs) != 1 || !strings.Contains(text, `"`+c.Listen+`"`) {
		t.Errorf("Prometheus does not scrape %s", c.Listen)
	}
	project := compose(t)
	for _, path := range scrapes.RuleFiles {
		mounted(t, project.Services["prometheus"], path)
	}
	mounted(t, project.Services["exporter"], project.Services["exporter"].Command[2])
	var dashboards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "deploy", "compose", "grafana", "dashboards.yaml")), &struct {
		APIVersion int
		Providers  any
	}{}); err != nil {
		t.Error(err)
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy", "compose", "grafana", "dashboards.yaml")), &dashboards); err != nil {
		t.Fatal(err)
	}
	mounted(t, project.Services["grafana"], dashboards.Providers[0].Options.Path+"/kubecdc.json")
	if !strings.Contains(read(t, "deploy", "compose", "grafana", "datasources.yaml"), `"http://127.0.0.1:9090"`) ||
		!slices.Contains(project.Services["prometheus"].Command, "--web.listen-address=127.0.0.1:9090") {
		t.Error("Grafana does not ask Prometheus")
	}
}

// mounted checks that the service has the path.
func mounted(t *testing.T, service types.ServiceConfig, path string) {
	t.Helper()
	if !slices.ContainsFunc(service.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == path }) {
		t.Errorf("%s has no %s", service.Name, path)
	}
}
