package checkpoint

import "testing"

func FuzzI5EntryRoundTrip(f *testing.F) {
	for _, uid := range []string{"", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B810-9dad-11d1-80b4-00c04fd430c8", "6ba7b810-9dad-11d1-80b4-00c04fd430c", "6ba7b810-9dad-11d1-80b4-00c04fd4-0c8", "x"} {
		for _, version := range []string{"", "0", "1", "007", "+7", "-7", "18446744073709551615", "18446744073709551616", "12a", "\x00"} {
			f.Add(uid, version)
		}
	}
	f.Fuzz(func(t *testing.T, uid, version string) {
		value := appendEntry(nil, uid, version)
		gotUID, gotVersion, err := parseEntry(value)
		if err != nil || gotUID != uid || gotVersion != version {
			t.Fatalf("%q %q came back as %q %q, %v", uid, version, gotUID, gotVersion, err)
		}
	})
}

// FuzzI5ForeignValues: no bytes make a parser panic, and what it accepts it can write again.
func FuzzI5ForeignValues(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200})
	f.Add([]byte{0, 200, 1})
	f.Fuzz(func(t *testing.T, value []byte) {
		_, _, _ = parseEntry(value)
		_, _ = parseCluster(value)
		_, _ = parsePlace(value)
	})
}

func TestI5CommonEntryIsSmall(t *testing.T) {
	if n := len(appendEntry(nil, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "123456789")); n != 21 {
		t.Errorf("a common entry takes %d bytes, want 21", n)
	}
}
