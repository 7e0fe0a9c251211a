package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestASignatureOfTheSumsIsVerified: make sign signs with a key that is made for this test, and minisign finds a
// change.
func TestASignatureOfTheSumsIsVerified(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	run := func(name string, args ...string) error {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = "../../.."
		output, err := cmd.CombinedOutput()
		t.Logf("%s: %v\n%s", cmd, err, output)
		return err
	}
	minisign := func(args ...string) error {
		return run("go", append([]string{"run", "aead.dev/minisign/cmd/minisign@v0.3.0"}, args...)...)
	}
	write := func(text string) {
		if err := os.WriteFile(at("SHA256SUMS"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("0000  kubecdc.tar.gz\n")
	if err := minisign("-G", "-W", "-p", at("public"), "-s", at("secret")); err != nil {
		t.Fatal(err)
	}
	if err := run("make", "sign", "MINISIGN_KEY="+at("secret"), "SUMS="+at("SHA256SUMS")); err != nil {
		t.Fatal(err)
	}
	if err := minisign("-V", "-p", at("public"), "-m", at("SHA256SUMS")); err != nil {
		t.Error("what is signed is not taken")
	}
	write("0001  kubecdc.tar.gz\n")
	if err := minisign("-V", "-p", at("public"), "-m", at("SHA256SUMS")); err == nil {
		t.Error("what was changed is taken")
	}
}
