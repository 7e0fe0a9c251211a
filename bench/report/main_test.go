package main

import (
	"strings"
	"testing"
	"time"
)

func TestFiguresAreGroupedAndTheLaterCounts(t *testing.T) {
	in := "go run ./bench/file\nbench file.ratio 0.1 ratio\nsomething else\nbench file.ratio 0.2 ratio\nbench kafka.rss_mib 90.0 MiB\nbench\n"
	figures, err := read(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	got := document(figures, []fact{{"commit", "abc"}})
	_, got, _ = strings.Cut(got, "|---|---|\n")
	want := "| commit | abc |\n" +
		"\n## file\n\n| figure | value | unit |\n|---|---:|---|\n| `file.ratio` | 0.2 | ratio |\n" +
		"\n## kafka\n\n| figure | value | unit |\n|---|---:|---|\n| `kafka.rss_mib` | 90.0 | MiB |\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNoFiguresAreAnError(t *testing.T) {
	if err := run(strings.NewReader("bench\n"), t.TempDir()+"/results", time.Now()); err == nil {
		t.Error("a file was written")
	}
}
