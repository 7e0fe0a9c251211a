// Package maven gives tests programs in Java: their libraries are fetched from Maven Central and they are compiled,
// once, and kept in the user's cache.
package maven

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
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/test/filelock"
)

const (
	// keepInstalls is how long an installation of other sources stays in the cache after its last use. One weighs a
	// hundred megabytes.
	keepInstalls = 7 * 24 * time.Hour

	// downloads is how often Maven is asked. What it has got it keeps.
	downloads = 3
)

// Project is what is to be installed.
type Project struct {
	Name    string   // of the directory in the cache: "kafka"
	Title   string   // for people: "Apache Kafka"
	Sources embed.FS // a directory java: pom.xml, which names the libraries, and our programs
	MinJava int      // the version of the JDK
	// Property, where set, is one of the libraries' versions in place of that in pom.xml: "kafka.version=3.9.2".
	Property string
	// Finish is the last step of an installation; nil is none.
	Finish func(ctx context.Context, d Dir) error
}

// Dir is an installation: a directory whose directory libs has the jars of the libraries and that of our programs.
type Dir string

// Libs is the class path.
func (d Dir) Libs() string { return filepath.Join(string(d), "libs", "*") }

// Available says in one line what this machine lacks, nil if nothing: a JDK and, until the project is in the cache,
// Maven.
func (p *Project) Available(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "java", "--describe-module", "jdk.compiler").CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("no java on PATH; %s needs a JDK of %d or later", p.Title, p.MinJava)
	}
	found := regexp.MustCompile(`^jdk\.compiler@(\d+)`).FindSubmatch(out)
	if err != nil || found == nil {
		return fmt.Errorf("java on PATH is no JDK; %s needs one of %d or later", p.Title, p.MinJava)
	}
	if version, err := strconv.Atoi(string(found[1])); err != nil || version < p.MinJava {
		return fmt.Errorf("java on PATH is %s; %s needs a JDK of %d or later", found[1], p.Title, p.MinJava)
	}
	d, err := p.dir()
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("mvn"); err != nil && !d.cached() {
		return fmt.Errorf("no mvn on PATH; %s is fetched from Maven Central with it", p.Title)
	}
	return nil
}

// Install returns the installation, made if these very sources were not before. Test binaries that need it at the same
// time wait for one of them to do it.
func (p *Project) Install(ctx context.Context) (d Dir, err error) {
	d, err = p.dir()
	if err != nil || d.cached() {
		return d, err
	}
	cache := filepath.Dir(string(d))
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("create cache for %s: %w", p.Name, err)
	}
	unlock, err := filelock.Lock(ctx, filepath.Join(cache, p.Name+".lock"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if d.cached() {
		return d, nil
	}
	if err := p.create(ctx, d); err != nil {
		return "", fmt.Errorf("install %s: %w", p.Name, err)
	}
	p.prune(cache)
	return d, nil
}

func (p *Project) dir() (Dir, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache for %s: %w", p.Name, err)
	}
	sum := sha256.New()
	err = fs.WalkDir(p.Sources, "java", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := p.Sources.ReadFile(name)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read sources for %s: %w", p.Name, err)
	}
	fmt.Fprint(sum, p.Property)
	return Dir(filepath.Join(cache, "kubecdc", fmt.Sprintf("%s-%x", p.Name, sum.Sum(nil)[:8]))), nil
}

// complete is the file that marks an installation as finished.
func (d Dir) complete() string { return filepath.Join(string(d), "complete") }

// cached reports whether an installation is finished, and marks it as used.
func (d Dir) cached() bool {
	now := time.Now()
	return os.Chtimes(d.complete(), now, now) == nil
}

// create fills the directory; an installation that was cut short is done again.
func (p *Project) create(ctx context.Context, d Dir) error {
	if err := os.RemoveAll(string(d)); err != nil {
		return err
	}
	if err := os.CopyFS(string(d), p.Sources); err != nil {
		return err
	}
	if err := p.download(ctx, d); err != nil {
		return err
	}
	if err := d.compile(ctx, p.Name); err != nil {
		return err
	}
	if p.Finish != nil {
		if err := p.Finish(ctx, d); err != nil {
			return err
		}
	}
	return os.WriteFile(d.complete(), nil, 0o644)
}

func (p *Project) download(ctx context.Context, d Dir) error {
	args := []string{"--batch-mode", "--quiet", "--file", filepath.Join(string(d), "java", "pom.xml"),
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=" + filepath.Join(string(d), "libs")}
	if p.Property != "" {
		args = append(args, "-D"+p.Property)
	}
	var err error
	for range downloads {
		cmd := exec.CommandContext(ctx, "mvn", args...)
		var out []byte
		if out, err = cmd.CombinedOutput(); err == nil {
			return nil
		}
		err = fmt.Errorf("fetch with mvn: %w\n%s", errors.Join(err, ctx.Err()), out)
	}
	return err
}

// compile compiles our programs, if there are any. It goes through java, which is on PATH, rather than javac, which
// need not be.
func (d Dir) compile(ctx context.Context, name string) error {
	jars, err1 := filepath.Glob(filepath.Join(string(d), "libs", "*.jar"))
	sources, err2 := filepath.Glob(filepath.Join(string(d), "java", "*.java"))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	if len(sources) == 0 {
		return nil
	}
	args := []string{"-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", strings.Join(jars, string(os.PathListSeparator)),
		"-d", filepath.Join(string(d), "classes")}
	if out, err := exec.CommandContext(ctx, "java", append(args, sources...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("compile: %w\n%s", errors.Join(err, ctx.Err()), out)
	}
	return d.pack(name)
}

// pack makes a jar of our programs: the archive takes classes from jars only.
func (d Dir) pack(name string) error {
	jar, err := os.Create(filepath.Join(string(d), "libs", "kubecdc-"+name+".jar"))
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	w := zip.NewWriter(jar)
	err = w.AddFS(os.DirFS(filepath.Join(string(d), "classes")))
	if err := errors.Join(err, w.Close(), jar.Close()); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	return nil
}

// prune removes installations of other sources that were never finished or that
// nobody has used for a while. It needs the lock.
func (p *Project) prune(cache string) {
	others, _ := filepath.Glob(filepath.Join(cache, p.Name+"-*"))
	for _, o := range others {
		info, err := os.Stat(Dir(o).complete())
		if err != nil || time.Since(info.ModTime()) > keepInstalls {
			os.RemoveAll(o)
		}
	}
}
