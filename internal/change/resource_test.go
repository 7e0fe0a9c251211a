package change

import "testing"

func TestNamesAreAppendedAsTheyAreMade(t *testing.T) {
	for _, stream := range []Stream{
		{Resource: Resource{Name: "pods"}},
		{Resource: Resource{Name: "secrets"}, Namespace: "shop"},
		{Resource: Resource{Group: "apps", Name: "deployments"}},
		{Resource: Resource{Group: "apps", Name: "deployments"}, Namespace: "shop"},
	} {
		if got := string(stream.AppendString([]byte("x "))); got != "x "+stream.String() {
			t.Errorf("%q is appended as %q", stream, got)
		}
	}
}
