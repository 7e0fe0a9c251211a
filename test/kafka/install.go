package kafka

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	minJava = 17 // Kafka 4's brokers need it (KIP-1013)

	// keepInstalls is how long an installation of other sources stays in the cache
	// after its last use. One weighs a hundred megabytes.
	keepInstalls = 7 * 24 * time.Hour

	// downloads is how often Maven is asked. What it has got it keeps.
	downloads = 3
)

// javaFiles are the pom, which names the version of Kafka, and our two programs.
//
//go:embed java
var javaFiles embed.FS

// install is a directory with Kafka's jars and that of our programs (libs).
type install string

// Available says in one line what this machine lacks to run Apache Kafka, nil if
// nothing: a JDK of 17 or later and, until Kafka is in the cache, Maven.
func Available(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "java", "--describe-module", "jdk.compiler").CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("no java on PATH; Apache Kafka needs a JDK of %d or later", minJava)
	}
	found := regexp.MustCompile(`^jdk\.compiler@(\d+)`).FindSubmatch(out)
	if err != nil || found == nil {
		return fmt.Errorf("java on PATH is no JDK; Apache Kafka needs one of %d or later", minJava)
	}
	if version, err := strconv.Atoi(string(found[1])); err != nil || version < minJava {
		return fmt.Errorf("java on PATH is %s; Apache Kafka needs a JDK of %d or later", found[1], minJava)
	}
	i, err := installDir()
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("mvn"); err != nil && !i.cached() {
		return errors.New("no mvn on PATH; Apache Kafka is fetched from Maven Central with it")
	}
	return nil
}

// installed returns the installation, made if these very sources were not before. Test binaries that need it at the same time wait for one of
// them to do it.
func installed(ctx context.Context) (install, error) {
	i, err := installDir()
	if err != nil || i.cached() {
		return i, err
	}
	cache := filepath.Dir(string(i))
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("create cache for Kafka: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(cache, "kafka.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if i.cached() {
		return i, nil
	}
	if err := i.create(ctx); err != nil {
		return "", err
	}
	i.prune()
	return i, nil
}

func installDir() (install, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache for Kafka: %w", err)
	}
	sum := sha256.New()
	err = fs.WalkDir(javaFiles, "java", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := javaFiles.ReadFile(name)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read sources for Kafka: %w", err)
	}
	return install(filepath.Join(cache, "kubecdc", fmt.Sprintf("kafka-%x", sum.Sum(nil)[:8]))), nil
}

// complete is the file that marks an installation as finished.
func (i install) complete() string { return filepath.Join(string(i), "complete") }

// archive holds the JVM's own form of the classes that a start needs. With it a
// start costs 1.2 s of CPU instead of 2.1 s. A JVM that it does not fit ignores it.
func (i install) archive() string { return filepath.Join(string(i), "classes.jsa") }

// cached reports whether an installation is finished, and marks it as used.
func (i install) cached() bool {
	now := time.Now()
	return os.Chtimes(i.complete(), now, now) == nil
}

// create fills the directory; an installation that was cut short is done again.
func (i install) create(ctx context.Context) error {
	if err := os.RemoveAll(string(i)); err != nil {
		return fmt.Errorf("install Kafka: %w", err)
	}
	if err := os.CopyFS(string(i), javaFiles); err != nil {
		return fmt.Errorf("install Kafka: %w", err)
	}
	for _, step := range []func(context.Context) error{i.download, i.compile, i.pack, i.train} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := os.WriteFile(i.complete(), nil, 0o644); err != nil {
		return fmt.Errorf("install Kafka: %w", err)
	}
	return nil
}

func (i install) download(ctx context.Context) error {
	var err error
	for range downloads {
		cmd := exec.CommandContext(ctx, "mvn", "--batch-mode", "--quiet", "--file", filepath.Join(string(i), "java", "pom.xml"),
			"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(string(i), "libs"))
		var out []byte
		if out, err = cmd.CombinedOutput(); err == nil {
			return nil
		}
		err = fmt.Errorf("fetch Kafka with mvn: %w\n%s", errors.Join(err, ctx.Err()), out)
	}
	return err
}

// compile goes through java, which is on PATH, rather than javac, which need not be.
func (i install) compile(ctx context.Context) error {
	jars, err1 := filepath.Glob(filepath.Join(string(i), "libs", "*.jar"))
	sources, err2 := filepath.Glob(filepath.Join(string(i), "java", "*.java"))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("compile for Kafka: %w", err)
	}
	args := []string{"-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", strings.Join(jars, string(os.PathListSeparator)),
		"-d", filepath.Join(string(i), "classes")}
	if out, err := exec.CommandContext(ctx, "java", append(args, sources...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("compile for Kafka: %w\n%s", errors.Join(err, ctx.Err()), out)
	}
	return nil
}

// pack makes a jar of our programs: the archive takes classes from jars only.
func (i install) pack(context.Context) error {
	jar, err := os.Create(filepath.Join(string(i), "libs", "kubecdc.jar"))
	if err != nil {
		return fmt.Errorf("pack for Kafka: %w", err)
	}
	w := zip.NewWriter(jar)
	err = w.AddFS(os.DirFS(filepath.Join(string(i), "classes")))
	if err := errors.Join(err, w.Close(), jar.Close()); err != nil {
		return fmt.Errorf("pack for Kafka: %w", err)
	}
	return nil
}

// train starts a broker and stops it, which leaves the archive.
func (i install) train(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "kafka-")
	if err != nil {
		return fmt.Errorf("try Kafka: %w", err)
	}
	c := &Cluster{install: i, dir: dir, options: Options{Nodes: 1}}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.createNodes(); err != nil {
		return fmt.Errorf("try Kafka: %w", err)
	}
	n := c.nodes[0]
	command := slices.Insert(c.command(n), 1, "-XX:ArchiveClassesAtExit="+i.archive())
	if err := n.start(command); err != nil {
		return fmt.Errorf("try Kafka: %w", err)
	}
	if err := n.awaitReady(ctx); err != nil {
		return fmt.Errorf("try Kafka: %w", err)
	}
	return c.StopNode(n.id)
}

// prune removes installations of other sources that were never finished or that
// nobody has used for a while. It needs the lock.
func (i install) prune() {
	others, _ := filepath.Glob(filepath.Join(filepath.Dir(string(i)), "kafka-*"))
	for _, o := range others {
		info, err := os.Stat(install(o).complete())
		if err != nil || time.Since(info.ModTime()) > keepInstalls {
			os.RemoveAll(o)
		}
	}
}

// java returns the command that runs one of our programs in a small JVM. Its
// compiler stops early and its collector has one thread: tests share two cores.
// What the JVM itself has to say goes to stderr.
func (i install) java(heap, logLevel, program string, args ...string) []string {
	const logger = "-Dorg.slf4j.simpleLogger."
	command := []string{
		"java", "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xlog:disable", "-Xlog:all=error:stderr",
		logger + "defaultLogLevel=" + logLevel, logger + "showDateTime=true", logger + "dateTimeFormat=HH:mm:ss.SSS",
		logger + "log.org.apache.kafka.common.config=warn", logger + "log.org.apache.kafka.storage.internals.log=warn",
		"-cp", filepath.Join(string(i), "libs", "*"),
	}
	if _, err := os.Stat(i.archive()); err == nil {
		command = append(command, "-XX:SharedArchiveFile="+i.archive())
	}
	return append(append(command, program), args...)
}
