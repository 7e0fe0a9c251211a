package sim

import (
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// rules are what a life leaves out of objects.
type rules struct {
	shape func(*change.Record) // nil leaves them as they are
	today *shape.Today
}

func rulesOf(spec lifeSpec) (rules, error) {
	cut := transform.Rules{Drop: []string{".metadata.managedFields"}} // they are cut while objects are read
	if !spec.Strict {
		today, err := shape.NewToday([]shape.Entry{{Rules: cut}}, transform.Key{Secret: []byte("key")})
		return rules{today: today}, err
	}
	drop := transform.Rules{Drop: []string{".salt"}}
	made, err := shape.New(shape.Options{Rules: drop, Key: transform.Key{Secret: []byte("key")}, Failed: func(*change.Record, error) {}})
	if err != nil {
		return rules{}, err
	}
	today, err := shape.NewToday([]shape.Entry{{Rules: drop.Join(cut)}}, transform.Key{Secret: []byte("key")})
	return rules{shape: made.Apply, today: today}, err
}

// salted says whether the object is as lives show it whose rules are not strict.
func salted(object string) bool { return strings.Contains(object, `,"salt":`) }

// unsalted is the object as strict rules show it.
func unsalted(object string) string {
	if before, _, found := strings.Cut(object, `,"salt":`); found {
		return before + "}"
	}
	return object
}

// isOf says whether the text is the object, in the form of one rules or the others.
func isOf(text, object string) bool { return text == object || text == unsalted(object) }
