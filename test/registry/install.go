// Package registry gives tests a real schema registry with the API of Confluent's: Apicurio Registry from Maven
// Central, which keeps everything in memory.
package registry

import (
	"context"
	"embed"
	"fmt"
	"os/exec"

	"github.com/kubecdc/kubecdc/test/maven"
)

// javaFiles are the pom, and a repository with the one file that Maven Central lacks.
//
//go:embed java
var javaFiles embed.FS

// project is the registry, an archive.
func project() *maven.Project {
	return &maven.Project{Name: "registry", Title: "Apicurio Registry", Sources: javaFiles, MinJava: 17, Finish: unpack}
}

// Available says in one line what this machine lacks to run the registry, nil if nothing.
func Available(ctx context.Context) error { return project().Available(ctx) }

// unpack unpacks the archive beside itself, and removes it.
func unpack(ctx context.Context, d maven.Dir) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", "mkdir program && tar -xzf libs/*.tar.gz -C program && rm libs/*.tar.gz")
	cmd.Dir = string(d)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack the registry: %w\n%s", err, out)
	}
	return nil
}
