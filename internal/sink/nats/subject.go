package nats

import (
	"slices"
	"strings"
)

// validSubject says whether a message can be published to the subject.
func validSubject(text string) bool {
	for token := range strings.SplitSeq(text, ".") {
		if token == "" || token == "*" || token == ">" {
			return false
		}
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// A server cuts the connection of who sends a longer line, whatever the message is (max_control_line, 4096 by default).
// Most clients take no longer ones either. Beside the subject a line has where to reply to: ours, or on its way to a
// consumer "$JS.ACK." with the names of stream and consumer, of 255 characters at most.
const (
	maxControlLine = 4096
	lineOfConsumer = 1024
	lineOfBatch    = 128 // a reply after our inbox, and sizes
)

// maxSubject is how long a subject may be where replies go to the inbox.
func maxSubject(inbox string) int {
	return min(maxControlLine-lineOfConsumer, maxControlLine-lineOfBatch-len(inbox))
}

// covers says whether the pattern takes everything that the subject, which may be a pattern itself, stands for.
func covers(pattern, subject string) bool {
	for {
		p, patternRest, patternMore := strings.Cut(pattern, ".")
		s, subjectRest, subjectMore := strings.Cut(subject, ".")
		switch {
		case p == ">":
			return true
		case s == ">", p != "*" && p != s, patternMore != subjectMore:
			return false
		case !patternMore:
			return true
		}
		pattern, subject = patternRest, subjectRest
	}
}

// Overlap says whether a message could be of both subjects, each of which may be a pattern.
func Overlap(a, b string) bool {
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	for i := 0; i < len(left) && i < len(right); i++ {
		switch l, r := left[i], right[i]; {
		case l == ">" || r == ">":
			return true
		case l != r && l != "*" && r != "*":
			return false
		}
	}
	return len(left) == len(right)
}

// Filters are those of the patterns that no other one covers, none twice.
func Filters(patterns ...string) (kept []string) {
	for _, pattern := range patterns {
		if !coveredByAny(kept, pattern) {
			kept = slices.DeleteFunc(kept, func(other string) bool { return covers(pattern, other) })
			kept = append(kept, pattern)
		}
	}
	return kept
}

func coveredByAny(patterns []string, subject string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return covers(pattern, subject) })
}
