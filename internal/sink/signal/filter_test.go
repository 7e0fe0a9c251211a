package signal

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func TestFiltersAreWhatAnAPIServerSelectsBy(t *testing.T) {
	for text, want := range map[string]change.Limits{
		"namespace='shop'": {Namespace: "shop"},
		`"metadata"."namespace" = 'shop' AND metadata.name='web'`:                    {Namespace: "shop", Name: "web"},
		"NAMESPACE = shop and Labels.App == 'Web'":                                   {Namespace: "shop", Selector: "App=Web"},
		"labels.app.kubernetes.io/name <> 'web' AND labels.tier IN ('a', 'b')":       {Selector: "app.kubernetes.io/name!=web,tier in (a,b)"},
		"metadata.labels.`app.kubernetes.io/name` != web and labels.tier not in (a)": {Selector: "app.kubernetes.io/name!=web,tier notin (a)"},
		"selector='app=web,tier in (a,b)' AND labelSelector='x'":                     {Selector: "app=web,tier in (a,b),x"},
		"name='o''clock'":           {Name: "o'clock"},
		"name='a' and name='a'":     {Name: "a"},
		"\n\tnamespace\r\n=\n'a'\n": {Namespace: "a"},
	} {
		if got, err := parseFilter(text); err != nil || got != want {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestFiltersOfMoreAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "an operator is missing",
		"color='blue'":                         `an API server cannot select by "color"`,
		"name='a' OR name='b'":                 `"OR" cannot be followed`,
		"name='a' and name='b'":                `name is "a" and "b" at once`,
		"name=''":                              "name is empty",
		"name > 'a'":                           `"> 'a'" is not expected`,
		"name != 'a'":                          "name can be compared with = only",
		"name in ('a')":                        "name can be compared with = only",
		"name = 'a":                            "a ' is not closed",
		`"name = 'a'`:                          `a " is not closed`,
		"labels.a in 'x'":                      "a ( is missing",
		"labels.a in ('x'":                     "a ) is missing",
		"labels.a in ()":                       `")" is not expected`,
		"labels.a = 'x,b=y'":                   `"x,b=y" cannot be of a label`,
		`labels."a,b" = 'x'`:                   `"a,b" cannot be of a label`,
		"labels. = 'x'":                        "a label has no name",
		"name='a' and":                         "an operator is missing",
		"SELECT * FROM [s].[t] WHERE a = 0":    `"* FROM [s].[t] WHERE" is not expected`,
		`"labels.İİİİİİİİİİİ" = 'x'`:           `cannot be of a label`,
		strings.Repeat("İ", 5000) + " = 'x'":   "is not expected",
		"name = '" + strings.Repeat("'", 5000): "a ' is not closed",
	} {
		got, err := parseFilter(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), conditions) || len(err.Error()) > 1500 {
			t.Errorf("%.60s is %+v, %v; want %s", text, got, err, want)
		}
	}
}
