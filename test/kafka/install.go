package kafka

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kubecdc/kubecdc/test/matrix"
	"github.com/kubecdc/kubecdc/test/maven"
)

// javaFiles are the pom, which names the version of Kafka, and our two programs.
//
//go:embed java
var javaFiles embed.FS

// install is a directory with Kafka's jars and that of our programs (libs).
type install string

// project is Apache Kafka. Kafka 4's brokers need Java 17 (KIP-1013).
func project() *maven.Project {
	p := &maven.Project{
		Name: "kafka", Title: "Apache Kafka", Sources: javaFiles, MinJava: 17,
		Finish: func(ctx context.Context, d maven.Dir) error { return install(d).train(ctx) },
	}
	if version := matrix.Kafka(); version != "" {
		p.Property = "kafka.version=" + version
	}
	return p
}

// Available says in one line what this machine lacks to run Apache Kafka, nil if
// nothing: a JDK of 17 or later and, until Kafka is in the cache, Maven.
func Available(ctx context.Context) error { return project().Available(ctx) }

// installed returns the installation, made if these very sources were not before.
func installed(ctx context.Context) (install, error) {
	d, err := project().Install(ctx)
	return install(d), err
}

// archive holds the JVM's own form of the classes that a start needs. With it a
// start costs 1.2 s of CPU instead of 2.1 s. A JVM that it does not fit ignores it.
func (i install) archive() string { return filepath.Join(string(i), "classes.jsa") }

// train starts a broker and stops it, which leaves the archive.
func (i install) train(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "kafka-")
	if err != nil {
		return fmt.Errorf("try Kafka: %w", err)
	}
	c := &Cluster{install: i, dir: dir, options: Options{Nodes: 1}}
	defer func() { err = errors.Join(err, c.Close()) }()
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

// java returns the command that runs one of our programs in a small JVM. Its
// compiler stops early and its collector has one thread: tests share two cores.
// What the JVM itself has to say goes to stderr.
func (i install) java(heap, logLevel, program string, args ...string) []string {
	const logger = "-Dorg.slf4j.simpleLogger."
	command := []string{
		"java", "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xlog:disable", "-Xlog:all=error:stderr",
		logger + "defaultLogLevel=" + logLevel, logger + "showDateTime=true", logger + "dateTimeFormat=HH:mm:ss.SSS",
		logger + "log.org.apache.kafka.common.config=warn", logger + "log.org.apache.kafka.storage.internals.log=warn",
		"-cp", maven.Dir(i).Libs(),
	}
	if _, err := os.Stat(i.archive()); err == nil {
		command = append(command, "-XX:SharedArchiveFile="+i.archive())
	}
	return append(append(command, program), args...)
}
