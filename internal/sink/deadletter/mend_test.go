package deadletter

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI9LettersOfOtherRulesAreMended: those whose form is another one, or is not known, and no others; claimed ones,
// too.
func TestI9LettersOfOtherRulesAreMended(t *testing.T) {
	d := newDir(t)
	old, claimed := keep(t, d, record("7")), keep(t, d, record("8"))
	if found, err := d.Claim(claimed); !found || err != nil {
		t.Fatal(found, err)
	}
	d.Form = func(stream *change.Stream) string { return "today of " + stream.String() }
	fresh := keep(t, d, record("9"))
	damaged := filepath.Join(d.Dir, "ffff"+suffix)
	must(t, os.WriteFile(damaged, []byte("{"), 0o600))
	due := func(head *Letter) bool {
		return head.Form != d.Form(&change.Stream{Resource: head.Record(clusterUID).Stream.Resource, Namespace: head.Namespaced})
	}
	var mended []string
	err := d.Mend(due, func(l *Letter) error {
		if !bytes.Contains(l.Value, []byte("Deployment")) || !bytes.Contains(l.Object, []byte("Deployment")) {
			t.Errorf("letter %s has %s and %s", l.ID, l.Value, l.Object)
		}
		l.Object, l.Value, l.Form = []byte(`{"hash":1}`), []byte(`{"data":{"hash":1}}`), "today of shop/deployments.apps"
		mended = append(mended, l.ID)
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), damaged) || len(mended) != 2 {
		t.Errorf("mended %q, %v", mended, err)
	}
	for id, has := range map[string]string{old: "hash", claimed: "hash", fresh: "Deployment"} {
		l, err := d.Get(id)
		if err != nil || l.Form != "today of shop/deployments.apps" || !bytes.Contains(l.Value, []byte(has)) || !bytes.Contains(l.Object, []byte(has)) {
			t.Errorf("letter %s is %+v, %v", id, l, err)
		}
	}
	must(t, os.Remove(damaged))
	if err := d.Mend(due, func(*Letter) error { return errors.New("mended twice") }); err != nil {
		t.Error(err)
	}
	must(t, settle(d, record("8").ID(clusterUID).String()))
	if left := ids(t, d); len(left) != 2 {
		t.Errorf("left are %q: the claimed one is delivered", left)
	}
}

// must ends the test where there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
