package filter

import (
	"errors"
	"strings"

	"github.com/google/cel-go/interpreter"
)

// errQuoting stands for an error whose text may have values of the object in it.
var errQuoting = errors.New("a function does not accept a value of this object; its message is left out, since it may quote the object")

// constants are the texts of CEL's errors, or their beginnings, that quote nothing of an object.
func constants() []string {
	return []string{
		"no such overload", "division by zero", "modulus by zero", "integer overflow", "unsigned integer overflow", "duration overflow",
		"timestamp overflow", "index out of bounds", "index out of range", unreadable,
	}
}

const (
	noKey      = "no such key"
	unreadable = "read the object as it was"
)

// withoutValues is the error of an evaluation without what it quotes of the object: it is logged, and a filter sees
// values that are redacted later (I9). int("secret") would quote them, as most functions do.
func withoutValues(err error, expression string) error {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) {
		return err // CEL's own text
	}
	text := err.Error()
	if key, found := strings.CutPrefix(text, noKey+": "); found {
		if names(expression, key) {
			return err
		}
		return errors.New(noKey)
	}
	for _, constant := range constants() {
		if strings.HasPrefix(text, constant) {
			return errors.New(constant)
		}
	}
	return errQuoting
}

// names says whether the expression itself has the key, as a field or as a text; it may also come from the object.
func names(expression, key string) bool {
	for _, around := range []string{`"` + key + `"`, `'` + key + `'`, "." + key, "?" + key} {
		if strings.Contains(expression, around) {
			return true
		}
	}
	return false
}
