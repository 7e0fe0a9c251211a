package consumers

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/child"
)

// windowsConfiguration is what a user has for windows in Flink. The topic has several partitions, one of them without
// an object.
const windowsConfiguration = `
cluster: windows
resources: [configmaps]
state: {dir: %[1]s/state}
listen: 127.0.0.1:0
sinks:
- {name: lake, resolved: {every: 1s}, kafka: {brokers: [%[2]q], topic: windows, partitions: 3, tombstones: false}}
# %[3]s
`

// TestWindowsOfAQuietStreamClose: Flink's watermark comes from what is resolved, by the SQL of docs/reading-kafka.md.
// No change follows the last one of its window.
func TestWindowsOfAQuietStreamClose(t *testing.T) {
	requireJava(t)
	s := newTypedStage(t, windowsConfiguration)
	install, err := flink().Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.x.start(t)
	s.x.settle(t)
	s.w.create(configMaps, "default", "counted", `{"apiVersion":"v1","kind":"ConfigMap"}`)
	for i := range 3 {
		s.w.patch(configMaps, "default", "counted", fmt.Sprintf(`{"data":{"a":"%d"}}`, i))
	}
	s.w.remove(configMaps, "default", "counted")

	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reading-kafka.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllSubmatch(page, -1)
	sql := strings.NewReplacer("kafka:9092", s.brokers(), "k8s.prod-eu1.pods", "windows").Replace(string(blocks[len(blocks)-1][1]))
	statements := strings.SplitN(strings.TrimSuffix(strings.TrimSpace(sql), ";"), ";\n", 2)
	command := java(install, append([]string{"Sql"}, statements...)...)
	cmd := exec.Command(command[0], command[1:]...)
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	job, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer job.Kill()
	defer time.AfterFunc(limit, job.Kill).Stop()
	counted := 0
	for lines := bufio.NewScanner(said); counted < 5 && lines.Scan(); {
		t.Logf("Flink says %s", lines.Text())
		var n int
		if _, err := fmt.Sscanf(lines.Text()[strings.LastIndex(lines.Text(), ", ")+2:], "%d]", &n); err != nil {
			t.Fatal(err)
		}
		counted += n
	}
	if counted != 5 {
		t.Errorf("the windows that Flink has closed have %d changes, want 5\n%s", counted, s.x.log())
	}
	s.x.stop(t)
}
