package signal

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// parseFilter reads the filter of an additional condition: SQL of conditions that an API server can select by. The
// selector in what it returns was not looked at.
func parseFilter(text string) (limits change.Limits, err error) {
	refuse := func(why string) (change.Limits, error) {
		return change.Limits{}, fmt.Errorf("filter %.100q: %s: want namespace='shop', name='web' or selector='app=web,tier in (a,b)', joined by AND", text, why)
	}
	condition := regexp.MustCompile(`(?i)^\s*(namespace|name|selector)\s*=\s*'((?:[^']|'')*)'\s*(and\s|$)`)
	columns := map[string]*string{"namespace": &limits.Namespace, "name": &limits.Name, "selector": &limits.Selector}
	for rest, more := text, true; more; {
		found := condition.FindStringSubmatch(rest)
		if found == nil {
			return refuse(fmt.Sprintf("an API server cannot select by %.40q", cmp.Or(strings.TrimSpace(rest), "nothing")))
		}
		column, value := strings.ToLower(found[1]), strings.ReplaceAll(found[2], "''", "'")
		switch into := columns[column]; {
		case value == "":
			return refuse(column + " is empty")
		case *into != "" && *into != value:
			return refuse(fmt.Sprintf("%s is %.70q and %.70q at once", column, *into, value))
		default:
			*into = value
		}
		rest, more = rest[len(found[0]):], found[3] != ""
	}
	return limits, nil
}
