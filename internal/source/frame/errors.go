package frame

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrTooLarge is the error of a frame, or an item of a list, that is longer than Options.MaxBytes.
var ErrTooLarge = errors.New("scan JSON: longer than the limit")

// SyntaxError says that what was read is no JSON, or not what a watch or a list consists of.
type SyntaxError struct {
	// Offset is where, in bytes from the start of the stream.
	Offset int64
	// Excerpt is what stands there, with letters and digits masked: it may be the value of a Secret.
	Excerpt string
	// Err says what is wrong.
	Err error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("scan JSON at byte %d, near %q: %v", e.Offset, e.Excerpt, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// IsUnreadable says whether the error is of what was read, and not of reading it.
func IsUnreadable(err error) bool {
	_, syntax := errors.AsType[*SyntaxError](err)
	return syntax || errors.Is(err, ErrTooLarge)
}

// syntaxError makes the error for data[at:]. base is where data starts in the stream.
func syntaxError(data []byte, base int64, at int, err error) error {
	at = min(max(at, 0), len(data))
	return &SyntaxError{Offset: base + int64(at), Excerpt: excerpt(data, at), Err: err}
}

// fault is an error at a place in the bytes at hand, on its way to whoever knows where in the stream these stand.
type fault struct {
	at  int
	err error
}

func (f *fault) Error() string { return f.err.Error() }

func faultf(at int, format string, args ...any) error {
	return &fault{at: at, err: fmt.Errorf(format, args...)}
}

// located turns an error about data into a *SyntaxError.
func located(data []byte, base int64, err error) error {
	if f, ok := errors.AsType[*fault](err); ok {
		return syntaxError(data, base, f.at, f.err)
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return syntaxError(data, base, int(s.Offset)-1, err)
	}
	return syntaxError(data, base, 0, err)
}

// excerpt shows the shape of the text around a place: enough to see what is wrong with quotes, brackets and commas.
func excerpt(data []byte, at int) string {
	const before, after = 24, 16
	text := append([]byte(nil), data[max(0, at-before):min(len(data), at+after)]...)
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			text[i] = '0'
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= 0x80:
			text[i] = 'x'
		}
	}
	return string(text)
}
