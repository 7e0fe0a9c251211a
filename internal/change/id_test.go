package change

import (
	"testing"
)

func pods() *Stream {
	return &Stream{Resource: Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
}

func TestI8IDIsAPureFunctionOfTheObject(t *testing.T) {
	const cluster = "0b6f3c1e-8a4d-4c39-9d2b-0a1b2c3d4e5f"
	snapshot := &Snapshot{ID: "900.1732155194123"}
	web := Key{Namespace: "shop", Name: "web"}
	for want, rec := range map[string]*Record{
		"0b6f3c1e/pods/shop/web/u-1/12/updated":                 {Op: Updated, Key: web, UID: "u-1", ResourceVersion: "12"},
		"0b6f3c1e/pods/shop/web/u-1/12/replaced":                {Op: Replaced, Key: web, UID: "u-1", ResourceVersion: "12", Snapshot: snapshot},
		"0b6f3c1e/pods/shop/web/u-1/12/sync/900.1732155194123":  {Op: Sync, Key: web, UID: "u-1", ResourceVersion: "12", Snapshot: snapshot},
		"0b6f3c1e/pods////900/snapshot.begin/900.1732155194123": {Op: SnapshotBegin, ResourceVersion: "900", Snapshot: snapshot},
		"0b6f3c1e/pods//system:node:a%20b//7/deleted":           {Op: Deleted, Key: Key{Name: "system:node:a b"}, ResourceVersion: "7"},
		"0b6f3c1e/pods//t%C3%A9%22%5C%0A%7F//7/added":           {Op: Added, Key: Key{Name: "té\"\\\n\x7f"}, ResourceVersion: "7"},
	} {
		rec.Stream = pods()
		if got := rec.ID(cluster).String(); got != want {
			t.Errorf("id is %q, want %q", got, want)
		}
		if got := string(rec.AppendID([]byte("before "), cluster)); got != "before "+want {
			t.Errorf("appended id is %q, want %q", got, want)
		}
		rec.Stream = &Stream{Resource: Resource{Group: "apps", Version: "v1", Name: "deployments"}, Namespace: "shop"}
		if got := string(rec.AppendID(nil, cluster)); got != rec.ID(cluster).String() {
			t.Errorf("appended id is %q, want %q", got, rec.ID(cluster))
		}
	}
}

func FuzzIDReadsBack(f *testing.F) {
	f.Add("shop", "web-1", "0b6f3c1e-8a4d", "123", uint8(2), "")
	f.Add("", "system:node:a b", "", "", uint8(5), "900.1")
	f.Add("", "", "", "900", uint8(7), "900.1")
	f.Add("n/s", "%2F\x00", "é", "1", uint8(1), "")
	f.Fuzz(func(t *testing.T, namespace, name, uid, version string, op uint8, snapshot string) {
		id := ID{
			Cluster: "0b6f3c1e", Resource: "deployments.apps", Key: Key{namespace, name}, UID: uid, ResourceVersion: version,
			Op: Added + Op(op)%(Gap-Added+1), Snapshot: "",
		}
		if snapshot != "" {
			id.Snapshot = "900.1"
		}
		text := id.String()
		for i := range len(text) {
			if c := text[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
				t.Fatalf("id %q holds %q, which needs escaping", text, c)
			}
		}
		back, err := ParseID(text)
		if err != nil || back != id {
			t.Fatalf("id %+v became %q and then %+v, %v", id, text, back, err)
		}
	})
}

func TestForeignIDsAreRefused(t *testing.T) {
	for _, text := range []string{"", "a", "a/b/c/d/e/f/g", "a/pods/n/m/u/1/updated/x/y", "a/pods/%zz/m/u/1/updated", "a//n/m/u/1/updated"} {
		if id, err := ParseID(text); err != ErrForeignID {
			t.Errorf("ParseID(%q) = %+v, %v; want ErrForeignID", text, id, err)
		}
	}
}

func TestI8IDIsOfTheHistoryThatTheRecordWasReadFrom(t *testing.T) {
	for epoch, want := range map[string]string{
		"":                               "0b6f3c1e",
		"eeeeeeee-1111":                  "eeeeeeee",
		NewEpoch("eeeeeeee-1111", 36*36): "eeeeeeee~100",
		NewEpoch("short", 35):            "short~z",
	} {
		rec := &Record{Stream: pods(), Op: Updated, Key: Key{Name: "web"}, ResourceVersion: "1", Epoch: epoch}
		if appended := string(rec.AppendID(nil, "0b6f3c1e-8a4d")); appended != rec.ID("0b6f3c1e-8a4d").String() {
			t.Errorf("appended id is %q, want %q", appended, rec.ID("0b6f3c1e-8a4d"))
		}
		id := rec.ID("0b6f3c1e-8a4d")
		if id.Cluster != want {
			t.Errorf("the id in epoch %q is of %s, want %s: a replay after a restart has it", epoch, id.Cluster, want)
		}
		if back, err := ParseID(id.String()); back != id || err != nil {
			t.Errorf("id %s is read as %+v, %v", id, back, err)
		}
	}
	if got := ClusterOf(NewEpoch("eeeeeeee-1111", 7)); got != "eeeeeeee-1111" {
		t.Errorf("the cluster of an epoch is %q", got)
	}
}
