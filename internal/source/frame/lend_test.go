package frame

import (
	"bytes"
	"strings"
	"testing"
)

// TestObjectsLast: those that are not lent, what is kept of lent ones, and the names of both, after all others. Who
// appends to an object changes no other.
func TestObjectsLast(t *testing.T) {
	text, _ := stream()
	for i, pad := range []int{0, 1, keepWindow - 100, keepWindow, 3 * keepWindow, 10} {
		text += watchLine(Modified, strings.Replace(pod(i), `"spec":`, `"pad":"`+strings.Repeat("x", pad)+`","spec":`, 1))
		text += watchLine(Modified, `{ "metadata": {"name": "sp\u0061ce", "namespace": "n", "uid": "u", "resourceVersion": "9"} }`)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, lend := range []bool{false, true} {
		r := NewReader(strings.NewReader(text), Options{Lend: lend})
		frames, lent, overwritten := make([]Frame, len(lines)), make([][]byte, len(lines)), 0
		check := func(i int) {
			if err := compareObject(frames[i].Object, must(oracleFrame([]byte(lines[i]), Options{})).Object, Options{}); err != nil {
				t.Fatalf("frame %d: %v", i, err)
			}
		}
		for i := range lines {
			frames[i] = must(r.Next())
			if check(i); lend {
				lent[i], frames[i].Object.JSON = frames[i].Object.JSON, r.Keep(frames[i].Object.JSON)
			}
		}
		for i := range lines {
			_ = append(frames[i].Object.JSON, "overwritten by whom"...)
			if check(min(i+1, len(lines)-1)); lend && !bytes.Equal(lent[i], frames[i].Object.JSON) {
				overwritten++
			}
		}
		if lend && overwritten == 0 {
			t.Error("no object was lent")
		}
	}
}
