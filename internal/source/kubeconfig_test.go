package source

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLoginInTheServerURLIsNeverPrinted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	const text = `{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"k","cluster":{"server":"https://joe:s3cret@127.0.0.1:6443"}}],
		"contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],"users":[{"name":"u","user":{}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, name, err := LoadKubeconfig(file, "")
	if err != nil || name != "c" {
		t.Fatalf("context %q, %v", name, err)
	}
	if config.Host != "https://127.0.0.1:6443" || config.Username != "joe" || config.Password != "s3cret" {
		t.Errorf("host is %q, login %q %q", config.Host, config.Username, config.Password)
	}
}
