package signal

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func TestFiltersAreWhatAnAPIServerSelectsBy(t *testing.T) {
	for text, want := range map[string]change.Limits{
		"namespace='shop'":                                    {Namespace: "shop"},
		"NAMESPACE = 'shop' and Name='web'":                   {Namespace: "shop", Name: "web"},
		"selector='app=web,tier in (a,b)' AND\nname='a'":      {Name: "a", Selector: "app=web,tier in (a,b)"},
		"name='o''clock'":                                     {Name: "o'clock"},
		"name='a' and name='a'":                               {Name: "a"},
		"\n\tnamespace\r\n=\n'a'\n":                           {Namespace: "a"},
		"selector='a=b' AND namespace='x' AND selector='a=b'": {Namespace: "x", Selector: "a=b"},
	} {
		if got, err := parseFilter(text); err != nil || got != want {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestFiltersOfMoreAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     `cannot select by "nothing"`,
		"color='blue'":                         `an API server cannot select by "color='blue'"`,
		"name='a' OR name='b'":                 `an API server cannot select by "name='a' OR name='b'"`,
		"name='a' and name='b'":                `name is "a" and "b" at once`,
		"selector='a' and selector='b'":        `selector is "a" and "b" at once`,
		"name=''":                              "name is empty",
		"name > 'a'":                           "cannot select by",
		"name != 'a'":                          "cannot select by",
		"name = a":                             "cannot select by",
		"name = 'a":                            "cannot select by",
		"name='a' and":                         `cannot select by "name='a' and"`,
		"name='a' and ":                        `cannot select by "nothing"`,
		"name='a' andname='a'":                 "cannot select by",
		"labels.app = 'x'":                     `cannot select by "labels.app = 'x'"`,
		"SELECT * FROM [s].[t] WHERE a = 0":    "cannot select by",
		strings.Repeat("İ", 5000) + " = 'x'":   "cannot select by",
		"name = '" + strings.Repeat("'", 5000): "cannot select by",
	} {
		got, err := parseFilter(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "joined by AND") || len(err.Error()) > 1500 {
			t.Errorf("%.60s is %+v, %v; want %s", text, got, err, want)
		}
	}
}
