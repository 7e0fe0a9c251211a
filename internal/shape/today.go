package shape

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/transform"
)

// Today is how the objects of a stream are cut and redacted now. What was put on disk by other rules goes through it
// before it goes out or is shown (I9).
type Today struct {
	// Form tells the rules apart, and the key of the hashes, which cannot be read out of it.
	Form  string
	rules []*transform.Transform // one after the other
}

// NewToday is for rules with everything in them that is cut, also that which is cut from every object unless it is
// kept. A sink's own rules come after those of the resource.
func NewToday(rules transform.Rules, key []byte, sinks ...transform.Rules) (*Today, error) {
	t := &Today{}
	var all []byte
	for _, rules := range append([]transform.Rules{rules}, sinks...) {
		text, err := json.Marshal(rules)
		if err != nil {
			return nil, fmt.Errorf("describe what is cut and redacted: %w", err)
		}
		all = append(all, text...)
		if rules.Empty() {
			continue
		}
		made, err := transform.New(rules, key)
		if err != nil {
			return nil, err
		}
		t.rules = append(t.rules, made)
	}
	t.Form = digest(all) + "." + digest(key)
	return t, nil
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// Reshape brings the record's objects, which were shaped by the rules of the form, into today's; "" is a form that is
// not known. Hashes that were made with today's key stay. After an error the objects are as they were.
func (t *Today) Reshape(rec *change.Record, form string) error {
	if form == t.Form {
		return nil
	}
	_, key, known := strings.Cut(form, ".")
	again := known && strings.HasSuffix(t.Form, "."+key)
	shaped := [2][]byte{rec.Object, rec.Before}
	for _, rules := range t.rules {
		if again {
			rules = rules.Again()
		}
		for i, object := range shaped {
			if object == nil {
				continue
			}
			var err error
			if shaped[i], err = rules.Apply(nil, object); err != nil {
				return err
			}
		}
	}
	rec.Object, rec.Before = shaped[0], shaped[1]
	return nil
}
