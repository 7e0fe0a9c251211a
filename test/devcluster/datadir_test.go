package main

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

func openTestDir(t *testing.T) dataDir {
	t.Helper()
	dir, err := openDataDir(filepath.Join(t.TempDir(), "new", "dir"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPortIsKeptUntilAnotherIsWanted(t *testing.T) {
	dir := openTestDir(t)
	first, err := dir.port(roleAPIServer, 0)
	if err != nil || first < 20000 || first >= 30000 {
		t.Fatalf("first port: got %d, %v, want one below the ephemeral ports", first, err)
	}
	if again, err := dir.port(roleAPIServer, 0); err != nil || again != first {
		t.Errorf("port of the next run: got %d, %v, want %d", again, err, first)
	}
	if _, err := dir.port(roleAPIServer, 12345); err != nil {
		t.Fatal(err)
	}
	if named, err := dir.port(roleAPIServer, 0); err != nil || named != 12345 {
		t.Errorf("port after a named one: got %d, %v, want 12345", named, err)
	}
	if err := os.WriteFile(dir.portFile(roleAPIServer), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.port(roleAPIServer, 0); err == nil || !strings.Contains(err.Error(), "delete") {
		t.Errorf("unreadable port: got %v, want an error that says what to do", err)
	}
}

func TestSecretsSurviveRestart(t *testing.T) {
	dir := openTestDir(t)
	files := func() (all string) {
		if err := dir.createSecrets(); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{dir.cert(), dir.certKey(), dir.accountKey(), dir.tokens()} {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode of %s: got %v, %v, want only the owner's", f, info.Mode(), err)
			}
			all += string(data)
		}
		return all
	}
	if first, second := files(), files(); first != second {
		t.Error("a second start made new secrets, want the first one's")
	}
}

func TestExpiringCertificateIsRenewed(t *testing.T) {
	dir := openTestDir(t)
	if err := dir.createCert(); err != nil {
		t.Fatal(err)
	}
	if !dir.certIsGood(time.Now().AddDate(0, 11, 0)) || dir.certIsGood(time.Now().AddDate(1, 1, 0)) {
		t.Error("a new certificate is not good for about a year")
	}
	if err := os.WriteFile(dir.cert(), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dir.createCert(); err != nil || !dir.certIsGood(time.Now()) {
		t.Errorf("bad certificate after the next start: %v, want a new one", err)
	}
}

func TestKubeconfigNeedsNoOtherFile(t *testing.T) {
	dir := openTestDir(t)
	if err := dir.createSecrets(); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.port(roleAPIServer, 23456); err != nil {
		t.Fatal(err)
	}
	config, err := kubeconfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	for context, user := range map[string]string{"": adminUser, "dev": adminUser, "limited": limitedUser} {
		client := clientcmd.NewNonInteractiveClientConfig(*config, context, nil, nil)
		got, err := client.ClientConfig()
		if err != nil {
			t.Fatal(err)
		}
		want, err := dir.token(user)
		if err != nil || want == "" || got.BearerToken != want {
			t.Errorf("token of context %q: got %q, %v, want that of %s", context, got.BearerToken, err, user)
		}
		if got.Host != "https://127.0.0.1:23456" || got.Insecure || got.CAFile != "" {
			t.Errorf("server of context %q: got %s, want a verified one on loopback", context, got)
		}
		verifyServer(t, dir, got.CAData)
	}
}

// verifyServer checks that the authority vouches for the serving certificate.
func verifyServer(t *testing.T, dir dataDir, authority []byte) {
	t.Helper()
	data, err := os.ReadFile(dir.cert())
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1"}); err != nil {
		t.Error(err)
	}
}

func TestWriteFileLeavesNoPartsBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, content := range []string{"longer content", "short"} {
		if err := writeFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("got %q, %v, want %q", got, err, content)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(dir, "d"), nil); err == nil {
		t.Error("wrote over a directory, want an error")
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
		t.Errorf("left in the directory: %v, %v, want f and d", names, err)
	}
}

func TestLogTailShowsOnlyThisRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	old := strings.Repeat("old line\n", 10)
	if err := os.WriteFile(path, []byte(old+"new line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := console{log: path, logStart: int64(len(old))}
	if got := c.logTail(); strings.Contains(got, "old") || !strings.Contains(got, "new line") {
		t.Errorf("tail: got %q, want the new line only", got)
	}
	c.logStart = int64(len(old) + len("new line\n"))
	if got := c.logTail(); got != "" {
		t.Errorf("tail of a silent run: got %q, want none", got)
	}
	if got := (&console{}).logTail(); got != "" {
		t.Errorf("tail without a log file: got %q, want none", got)
	}
}

func TestCommandLineMistakesExitTwo(t *testing.T) {
	for _, args := range [][]string{
		{}, {"--nonsense"}, {"stray", "--data-dir=x"}, {"--data-dir=x", "--role=x"},
		{"--data-dir=x", "--compaction-interval=-1s"}, {"compact"}, {"wait", "stray"},
	} {
		if got := execute(t.Context(), args); got != exitUsage {
			t.Errorf("exit code of %q: got %d, want %d", args, got, exitUsage)
		}
	}
}
