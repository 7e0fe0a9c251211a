// Package connect gives tests Kafka Connect with the sinks of Debezium, Iceberg and MongoDB, and databases for them.
package connect

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/test/child"
	"github.com/kubecdc/kubecdc/test/maven"
)

//go:embed java
var javaFiles embed.FS

// Project is Kafka Connect, its sinks, the databases, and programs that print what is in them: Rows, Tables, Documents.
func Project() *maven.Project {
	return &maven.Project{Name: "connect", Title: "Kafka Connect", Sources: javaFiles, MinJava: 17, Finish: unpack}
}

// unpack gets the database out of its archives.
func unpack(ctx context.Context, d maven.Dir) error {
	script := `mkdir postgres && unzip -q libs/embedded-postgres-*.jar -d archive && tar -xJf archive/*.txz -C postgres && rm -r archive`
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = string(d)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack PostgreSQL: %w\n%s", err, out)
	}
	return nil
}

// startLimit is how long a start may take on a busy machine.
const startLimit = 2 * time.Minute

// Postgres is a database that runs in a directory of its own.
type Postgres struct {
	port    int
	dir     string
	process *child.Process
}

// StartPostgres makes an empty database, and runs it.
func StartPostgres(ctx context.Context, d maven.Dir) (p *Postgres, err error) {
	port, err := child.FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "postgres-") // which the user may enter who runs it
	if err != nil {
		return nil, err
	}
	p = &Postgres{port: port, dir: dir}
	if err := os.CopyFS(filepath.Join(dir, "program"), os.DirFS(filepath.Join(string(d), "postgres"))); err != nil {
		return nil, errors.Join(fmt.Errorf("copy PostgreSQL: %w", err), os.RemoveAll(dir))
	}
	bin, data := filepath.Join(dir, "program", "bin"), filepath.Join(dir, "data")
	makes := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync")
	runs := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-h", "127.0.0.1", "-k", dir, "-F")
	if err := asOther(dir, makes, runs); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if out, err := makes.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a database: %w\n%s", err, out), os.RemoveAll(dir))
	}
	if p.process, err = child.Start(runs); err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), os.RemoveAll(dir))
	}
	if err := await(ctx, p.process, port); err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), p.Stop())
	}
	return p, nil
}

// URL is the address for JDBC.
func (p *Postgres) URL() string {
	return fmt.Sprintf("jdbc:postgresql://127.0.0.1:%d/postgres?user=postgres", p.port)
}

// Stop ends the database, and takes it away.
func (p *Postgres) Stop() error {
	p.process.Kill()
	return os.RemoveAll(p.dir)
}

// Mongo is a server of documents.
type Mongo struct {
	port    int
	process *child.Process
}

// StartMongo runs an empty server of documents.
func StartMongo(ctx context.Context, d maven.Dir) (*Mongo, error) {
	port, err := child.FreePort()
	if err != nil {
		return nil, err
	}
	m := &Mongo{port: port}
	m.process, err = child.Start(exec.Command("java", "-Xmx128m", "-XX:+UseSerialGC", "-cp", d.Libs(), "Documents", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("start a server of documents: %w", err)
	}
	if err := await(ctx, m.process, port); err != nil {
		m.Stop()
		return nil, fmt.Errorf("start a server of documents: %w", err)
	}
	return m, nil
}

// URL is the server's address.
func (m *Mongo) URL() string { return "mongodb://127.0.0.1:" + strconv.Itoa(m.port) }

// Stop ends the server.
func (m *Mongo) Stop() { m.process.Kill() }

// Worker is a process of Kafka Connect, with one connector.
type Worker struct {
	process *child.Process
	port    int
	log     string
}

// Start runs a worker of the brokers with the connectors, by their settings as a file of properties has them. What they
// write goes to the directory.
func Start(ctx context.Context, d maven.Dir, dir, brokers string, connectors ...map[string]string) (*Worker, error) {
	port, err := child.FreePort()
	if err != nil {
		return nil, err
	}
	var files []string
	converter := "org.apache.kafka.connect.json.JsonConverter"
	worker := map[string]string{
		"bootstrap.servers": brokers, "key.converter": converter, "value.converter": converter,
		"listeners": "http://127.0.0.1:" + strconv.Itoa(port), "offset.storage.file.filename": filepath.Join(dir, "connect.offsets"),
	}
	for i, settings := range append([]map[string]string{worker}, connectors...) {
		var text strings.Builder
		for key, value := range settings {
			fmt.Fprintf(&text, "%s=%s\n", key, value)
		}
		files = append(files, filepath.Join(dir, fmt.Sprintf("connect-%d.properties", i)))
		if err := os.WriteFile(files[i], []byte(text.String()), 0o600); err != nil {
			return nil, err
		}
	}
	w := &Worker{port: port, log: filepath.Join(dir, "connect.log")}
	cmd := exec.Command("java", append([]string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", d.Libs(), "org.apache.kafka.connect.cli.ConnectStandalone"}, files...)...)
	if w.process, err = child.StartLogged(cmd, w.log); err != nil {
		return nil, fmt.Errorf("start Kafka Connect: %w", err)
	}
	if err := await(ctx, w.process, port); err != nil {
		w.Stop()
		return nil, fmt.Errorf("start Kafka Connect: %w, see %s", err, w.log)
	}
	return w, nil
}

// URL is the address of the worker's API.
func (w *Worker) URL() string { return "http://127.0.0.1:" + strconv.Itoa(w.port) }

// Log is what the worker said.
func (w *Worker) Log() string {
	text, err := os.ReadFile(w.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop ends the worker.
func (w *Worker) Stop() { w.process.Kill() }

// await returns when the process listens.
func await(ctx context.Context, process *child.Process, port int) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return process.AwaitListener(ctx, port)
}
