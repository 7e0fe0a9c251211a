// Package registry gives tests a real schema registry with the API of Confluent's: Apicurio Registry from Maven
// Central, which keeps everything in memory.
package registry

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kubecdc/kubecdc/test/maven"
)

// javaFiles are the pom, and a repository with the one file that Maven Central lacks.
//
//go:embed java
var javaFiles embed.FS

// project is the registry. It is an archive, so there is nothing to compile.
func project() *maven.Project {
	return &maven.Project{Name: "registry", Title: "Apicurio Registry", Sources: javaFiles, MinJava: 17, Archive: unpack}
}

// Available says in one line what this machine lacks to run the registry, nil if nothing.
func Available(ctx context.Context) error { return project().Available(ctx) }

// unpack unpacks the archive beside itself, and removes it.
func unpack(_ context.Context, d maven.Dir) error {
	archives, err := filepath.Glob(filepath.Join(string(d), "libs", "*.tar.gz"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("unpack: there are %d archives, %w", len(archives), err)
	}
	if err := unpackFile(archives[0], filepath.Join(string(d), "program")); err != nil {
		return fmt.Errorf("unpack %s: %w", archives[0], err)
	}
	return os.Remove(archives[0])
}

func unpackFile(archive, dir string) (err error) {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && header.Typeflag == tar.TypeReg {
			err = unpackOne(files, dir, header.Name)
		}
		if err != nil {
			return err
		}
	}
}

func unpackOne(from io.Reader, dir, name string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("a file is called %q", name)
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
