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
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yaml")}, cli.WithEnv(append([]string{"HOME=/home/me"}, env...)))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// TestComposeFile is read by Compose's own library, which refuses unknown keys and wrong values. Each service has a
// pinned image and says when it is well, what is waited for is waited for until then, and nothing listens for other
// hosts.
func TestComposeFile(t *testing.T) {
	project := compose(t)
	if want := []string{"exporter", "grafana", "kafka", "nats", "prometheus"}; !slices.Equal(project.ServiceNames(), want) {
		t.Errorf("services %q, want %q", project.ServiceNames(), want)
	}
	for name, service := range project.Services {
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
	exporter := project.Services["exporter"]
	for _, broker := range []string{"kafka", "nats"} {
		if _, waits := exporter.DependsOn[broker]; !waits {
			t.Errorf("the exporter does not wait for %s", broker)
		}
	}
	if !exporter.ReadOnly || exporter.Privileged || !slices.Equal(exporter.CapDrop, []string{"ALL"}) {
		t.Error("the exporter has more rights than it needs")
	}
}

// checkMounts looks for what is mounted from the project.
func checkMounts(t *testing.T, service string, volumes []types.ServiceVolumeConfig) {
	t.Helper()
	for _, volume := range volumes {
		if volume.Type != types.VolumeTypeBind || volume.Target == "/kubeconfig" {
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
	c, err := config.Parse("exporter.yaml", []byte(read(t, "deploy", "compose", "exporter.yaml")), os.LookupEnv)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
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
