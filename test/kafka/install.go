package kafka

import (
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
	"strconv"
	"strings"
	"time"
)

const (
	minJava = 17 // Kafka 4's brokers need it (KIP-1013)

	// keepInstalls is how long an installation of other sources stays in the cache
	// after its last use. One weighs fifty-five megabytes.
	keepInstalls = 7 * 24 * time.Hour

	// downloads is how often Maven is asked. What it has got it keeps.
	downloads = 3
)

// javaFiles are the pom, which names the version of Kafka, and our two programs.
//
//go:embed java
var javaFiles embed.FS

// install is a directory with Kafka's jars (libs) and our programs (classes).
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
	dir, err := installDir()
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("mvn"); err != nil && !cached(dir) {
		return errors.New("no mvn on PATH; Apache Kafka is fetched from Maven Central with it")
	}
	return nil
}

// installed returns the installation, fetched and compiled if these very sources
// were not before. Test binaries that need it at the same time wait for one of
// them to do it.
func installed(ctx context.Context) (install, error) {
	dir, err := installDir()
	if err != nil {
		return "", err
	}
	if cached(dir) {
		return install(dir), nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("create cache for Kafka: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(filepath.Dir(dir), "kafka.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if cached(dir) {
		return install(dir), nil
	}
	if err := installAt(ctx, dir); err != nil {
		return "", err
	}
	prune(dir)
	return install(dir), nil
}

func installDir() (string, error) {
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
	return filepath.Join(cache, "kubecdc", fmt.Sprintf("kafka-%x", sum.Sum(nil)[:8])), nil
}

// cached reports whether dir is there, and marks it as used.
func cached(dir string) bool {
	now := time.Now()
	return os.Chtimes(dir, now, now) == nil
}

// installAt goes through a temporary name: an installation that is cut short
// leaves nothing that looks finished.
func installAt(ctx context.Context, dir string) error {
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("install Kafka: %w", err)
	}
	if err := os.CopyFS(partial, javaFiles); err != nil {
		return fmt.Errorf("install Kafka: %w", err)
	}
	if err := download(ctx, partial); err != nil {
		return err
	}
	if err := compile(ctx, partial); err != nil {
		return err
	}
	if err := os.Rename(partial, dir); err != nil {
		return fmt.Errorf("install Kafka: %w", err)
	}
	return nil
}

func download(ctx context.Context, dir string) error {
	var err error
	for range downloads {
		cmd := exec.CommandContext(ctx, "mvn", "--batch-mode", "--quiet", "--file", filepath.Join(dir, "java", "pom.xml"),
			"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(dir, "libs"))
		var out []byte
		if out, err = cmd.CombinedOutput(); err == nil {
			return nil
		}
		err = fmt.Errorf("fetch Kafka with mvn: %w\n%s", errors.Join(err, ctx.Err()), out)
	}
	return err
}

// compile goes through java, which is on PATH, rather than javac, which need not be.
func compile(ctx context.Context, dir string) error {
	jars, err1 := filepath.Glob(filepath.Join(dir, "libs", "*.jar"))
	sources, err2 := filepath.Glob(filepath.Join(dir, "java", "*.java"))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("compile for Kafka: %w", err)
	}
	args := []string{"-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", strings.Join(jars, string(os.PathListSeparator)),
		"-d", filepath.Join(dir, "classes")}
	if out, err := exec.CommandContext(ctx, "java", append(args, sources...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("compile for Kafka: %w\n%s", errors.Join(err, ctx.Err()), out)
	}
	return nil
}

// prune removes installations of other sources that nobody has used for a while.
func prune(dir string) {
	others, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "kafka-*"))
	for _, o := range others {
		if info, err := os.Stat(o); err == nil && time.Since(info.ModTime()) > keepInstalls {
			os.RemoveAll(o)
		}
	}
}

// java returns the arguments that run one of our programs in a small JVM.
// Its compiler stops early and its collector has one thread: tests share two cores.
func (i install) java(heap, logLevel, program string, args ...string) []string {
	const logger = "-Dorg.slf4j.simpleLogger."
	path := filepath.Join(string(i), "classes") + string(os.PathListSeparator) + filepath.Join(string(i), "libs", "*")
	return append([]string{
		"java", "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		logger + "defaultLogLevel=" + logLevel, logger + "showDateTime=true", logger + "dateTimeFormat=HH:mm:ss.SSS",
		logger + "log.org.apache.kafka.common.config=warn", logger + "log.org.apache.kafka.storage.internals.log=warn", "-cp", path, program,
	}, args...)
}
