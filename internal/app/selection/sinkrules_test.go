package selection

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/config"
)

func TestRulesOfASinkAreCheckedAndTheErrorSaysWhere(t *testing.T) {
	resources := []config.Resource{{Name: "pods", Before: true}, {Name: "nodes"}, {Name: "*"}}
	for _, c := range []struct {
		sink config.Sink
		want string
	}{
		{config.Sink{Name: "s", Filter: `object.a == "b"`, Only: []string{".a"}, Drop: []string{".b"}, Redact: []string{".c"}}, ""},
		{config.Sink{Name: "s", Filter: "oldObject == null", Resources: []string{"pods"}}, ""},
		{config.Sink{Name: "s", Filter: "oldObject == null", Resources: []string{"pods", "nodes"}}, `sink "s": compile filter: it uses oldObject, but these objects are not kept: add before: true`},
		{config.Sink{Name: "s", Filter: "oldObject == null"}, `sink "s": compile filter: it uses oldObject, but these objects are not kept: add before: true`},
		{config.Sink{Name: "s", Filter: "oldObject == null", Resources: []string{"*"}}, `sink "s": compile filter: it uses oldObject, but these objects are not kept: add before: true`},
		{config.Sink{Name: "s", Filter: "1"}, `sink "s": compile filter: the expression is of type int; want one that is true or false`},
		{config.Sink{Name: "s", Redact: []string{".a..b"}}, `sink "s": redact path ".a..b": a part is empty; .. is not supported`},
	} {
		err := CheckSinkRules(&config.Config{Resources: resources}, &c.sink)
		if got := ""; c.want != "" || err != nil {
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%+v: %s, want %s", c.sink, got, c.want)
			}
		}
	}
}
