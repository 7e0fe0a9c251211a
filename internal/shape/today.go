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
	rules *transform.Transform // nil leaves objects as they are
}

// NewToday is for rules with everything in them that is cut, also that which is cut from every object unless it is
// kept.
func NewToday(rules transform.Rules, key []byte) (*Today, error) {
	text, err := json.Marshal(rules)
	if err != nil {
		return nil, fmt.Errorf("describe what is cut and redacted: %w", err)
	}
	t := &Today{Form: digest(text) + "." + digest(key)}
	if !rules.Empty() {
		if t.rules, err = transform.New(rules, key); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// Reshape brings the record's objects, which were shaped by the rules of the form, into today's; "" is a form that is
// not known. Hashes that were made with today's key stay. After an error the objects are as they were.
func (t *Today) Reshape(rec *change.Record, form string) error {
	if form == t.Form || t.rules == nil {
		return nil
	}
	rules := t.rules
	if _, key, known := strings.Cut(form, "."); known && strings.HasSuffix(t.Form, "."+key) {
		rules = rules.Again()
	}
	var shaped [2][]byte
	for i, object := range [][]byte{rec.Object, rec.Before} {
		if object == nil {
			continue
		}
		var err error
		if shaped[i], err = rules.Apply(nil, object); err != nil {
			return err
		}
	}
	rec.Object, rec.Before = shaped[0], shaped[1]
	return nil
}
