package registry

import (
	"context"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// keys reads messages that have a key alone.
type keys []string

func (k keys) Read(_ context.Context, each func(*sink.Stored) error) error {
	for _, key := range k {
		if err := each(&sink.Stored{Place: "here", Key: []byte(key)}); err != nil {
			return err
		}
	}
	return nil
}

func (keys) Close() error { return nil }

func TestKeysAreReadAsTheFormatHasThem(t *testing.T) {
	var got string
	each := func(m *sink.Stored) error { got = string(m.Key); return nil }
	for key, want := range map[string]string{
		"\x00\x00\x00\x00\x07\x02\x08shop\x06web": `{"namespace":"shop","name":"web"}`, "\x00\x00\x00\x00\x07\x00\x06web": `{"namespace":null,"name":"web"}`,
		"shop/web": "shop/web",
	} {
		if err := NewReader(keys{key}, nil).Read(t.Context(), each); err != nil || got != want {
			t.Errorf("%q is read as %s, %v", key, got, err)
		}
	}
	for _, key := range []string{"", "\x02\x08sho", "\x02\x08shop\x06web!", "\x02\xff\xff\xff\xff\xff\xff\xff\xff\x7fshop"} {
		if err := NewReader(keys{"\x00\x00\x00\x00\x07" + key}, nil).Read(t.Context(), each); err == nil {
			t.Errorf("%q is read as %s", key, got)
		}
	}
}
