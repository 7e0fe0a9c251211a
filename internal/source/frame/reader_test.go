package frame

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// readAll returns nil at a clean end.
func readAll(r *Reader) (frames []Frame, err error) {
	for {
		f, err := r.Next()
		if err == io.EOF {
			return frames, nil
		}
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
}

// stream is a watch with frames of all sizes.
func stream() (text string, count int) {
	var b strings.Builder
	for i := range 60 {
		b.WriteString(watchLine(Modified, pod(i)))
		b.WriteString(watchLine(Added, fmt.Sprintf(`{"metadata":{"name":"small-%d"}}`, i)))
		if i%20 == 7 {
			b.WriteString(watchLine(Added, fmt.Sprintf(`{"metadata":{"name":"large-%d"},"data":{"x":%q}}`, i, strings.Repeat("x", 300_000))))
			count++
		}
		count += 2
	}
	return b.String(), count
}

func TestChunksDoNotMatter(t *testing.T) {
	text, count := stream()
	want, err := readAll(NewReader(strings.NewReader(text), Options{}))
	if err != nil || len(want) != count {
		t.Fatal(len(want), err)
	}
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "data with EOF": iotest.DataErrReader,
	} {
		got, err := readAll(NewReader(wrap(strings.NewReader(text)), Options{}))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d frames, %v", name, len(got), err)
		}
	}
}

func TestLines(t *testing.T) {
	const line = `{"type":"ADDED","object":{"metadata":{"name":"a"}}}`
	for _, c := range []struct {
		name, text string
		frames     int
		err        error
	}{
		{"nothing", "", 0, nil},
		{"one", line + "\n", 1, nil},
		{"CRLF", line + "\r\n" + line + "\r\n", 2, nil},
		{"empty lines", "\n\n" + line + "\n \r\n\n", 1, nil},
		{"space at the end", line + "\n \t", 1, nil},
		{"no newline", line + "\n" + line, 1, io.ErrUnexpectedEOF},
		{"half a line", line + "\n" + line[:20], 1, io.ErrUnexpectedEOF},
	} {
		frames, err := readAll(NewReader(strings.NewReader(c.text), Options{}))
		if len(frames) != c.frames || err != c.err {
			t.Errorf("%s: %d frames, %v", c.name, len(frames), err)
		}
	}
}

func TestErrorsOfTheReaderComeAfterTheFrames(t *testing.T) {
	broken := errors.New("connection reset")
	text := watchLine(Added, `{"metadata":{"name":"a"}}`)
	for _, tail := range []string{"", text[:10]} {
		r := NewReader(io.MultiReader(strings.NewReader(text+tail), iotest.ErrReader(broken)), Options{})
		if f, err := r.Next(); err != nil || f.Object.Name != "a" {
			t.Fatal(f, err)
		}
		for range 2 {
			if _, err := r.Next(); err != broken {
				t.Fatal(err)
			}
		}
	}
}

// TestI4WhatCannotBeReadEndsNoWatch: it is an error where nobody knows whose it is, and what comes after it is read.
// The error shows no value.
func TestI4WhatCannotBeReadEndsNoWatch(t *testing.T) {
	const named = `{"type":"MODIFIED","object":{"secret":"s3cr3t","metadata":{"uid":"u","n\u0061me":"b","resourceVersion":"7"},"x":tru}`
	const nobodys = `{"type":"ADDED","object":{"secret":"s3cr3t","x":tru}`
	// A scalar is not looked at: the missing bracket is what is found.
	r := NewReader(strings.NewReader(watchLine(Added, `{}`)+nobodys+"\n"+watchLine(Added, `{}`)+named+"\n"+watchLine(Added, `{}`)), Options{})
	plain := Frame{Type: Added, Object: Object{JSON: []byte(`{}`)}}
	for i, want := range []Frame{plain, {}, plain, {Type: Modified, Object: Object{Name: "b", UID: "u", ResourceVersion: "7"}}, plain} {
		f, err := r.Next()
		why := cmp.Or(err, f.Object.Err)
		if f.Object.Err = nil; !reflect.DeepEqual(f, want) || (err != nil) != (i == 1) || (why != nil) != (i%2 == 1) {
			t.Errorf("frame %d is %+v, %v", i, f, err)
		}
		if why != nil && (!IsUnreadable(why) || strings.Contains(why.Error(), "s3cr3t")) {
			t.Errorf("frame %d: %v", i, why)
		}
	}
	for range 2 {
		if _, err := r.Next(); err != io.EOF {
			t.Error(err)
		}
	}
}

// TestI6WhatIsTooLargeEndsTheWatch, whether it has an end or not, and what came before it is read.
func TestI6WhatIsTooLargeEndsTheWatch(t *testing.T) {
	small := watchLine(Added, `{"metadata":{"name":"a"}}`)
	large := watchLine(Modified, `{"metadata":{"name":"b"},"data":"`+strings.Repeat("x", 20_000)+`"}`)
	for limit, want := range map[int]error{len(large) - 2: ErrTooLarge, len(large) - 1: nil, len(large): nil} {
		r := NewReader(strings.NewReader(small+large+small), Options{maxBytes: limit})
		frames, err := readAll(r)
		if _, again := r.Next(); err != want || want == nil && len(frames) != 3 || want != nil && (len(frames) != 1 || again != want) {
			t.Errorf("limit %d of %d: %d frames, %v, and then %v", limit, len(large), len(frames), err, again)
		}
	}
	if _, err := NewReader(&loop{text: []byte("xxxxxxxx")}, Options{maxBytes: 1 << 16}).Next(); err != ErrTooLarge {
		t.Error(err)
	}
}

// blocking is a stream that has given all it has when idle is closed, and stays open until stop is.
type blocking struct {
	r          io.Reader
	idle, stop chan struct{}
}

func (b *blocking) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err == io.EOF {
		close(b.idle)
		<-b.stop
	}
	return n, err
}

// TestWindowsSettle reads frames of one size each for long: the window stops changing, and what it costs is in
// proportion.
func TestWindowsSettle(t *testing.T) {
	for _, size := range []int{300, 5_000, 12_000, 40_000, 60_000, 100_000, 1_000_000} {
		line := watchLine(Added, `{"metadata":{"name":"a"},"data":"`+strings.Repeat("x", size)+`"}`)
		r := NewReader(&loop{text: []byte(line)}, Options{})
		var before, after runtime.MemStats
		const frames = 300
		for i := range 2 * frames {
			if i == frames {
				runtime.ReadMemStats(&before)
			}
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		each := int(after.TotalAlloc-before.TotalAlloc) / frames
		t.Logf("frames of %d bytes: %d bytes allocated a frame, window of %d", len(line), each, len(r.window.buf))
		if each > 6*len(line) || size < keepWindow-100 && (each > 3*len(line)/2 || len(r.window.buf) > keepWindow) {
			t.Errorf("frames of %d bytes: %d bytes allocated a frame, window of %d", len(line), each, len(r.window.buf))
		}
	}
}

// TestQuietStreamsAreSmall has 200 streams wait that saw small, ordinary or huge frames.
func TestQuietStreamsAreSmall(t *testing.T) {
	huge := watchLine(Added, `{"metadata":{"name":"h"},"data":"`+strings.Repeat("x", 4<<20)+`"}`)
	for name, c := range map[string]struct {
		text  string
		bytes uint64 // a stream
	}{
		"nothing": {"", 24 << 10},
		"small":   {watchLine(Added, `{"metadata":{"name":"h"}}`), 32 << 10},
		"pods":    {strings.Repeat(watchLine(Added, pod(1)), 100), 160 << 10},
		"huge":    {huge, 160 << 10},
	} {
		const streams = 200
		before := heap()
		readers := make([]*Reader, streams)
		stop := make(chan struct{})
		var wait sync.WaitGroup
		for i := range readers {
			b := &blocking{r: strings.NewReader(c.text), idle: make(chan struct{}), stop: stop}
			readers[i] = NewReader(b, Options{})
			wait.Go(func() {
				for {
					if _, err := readers[i].Next(); err != nil {
						return
					}
				}
			})
			<-b.idle
		}
		each := (max(heap(), before) - before) / streams
		t.Logf("%s: %d bytes a stream", name, each)
		if each > c.bytes {
			t.Errorf("%s: a quiet stream takes %d bytes, want at most %d", name, each, c.bytes)
		}
		close(stop)
		wait.Wait()
	}
}

// TestI6ABookmarkKeepsNoSlab, also where its version is kept, and objects around it share theirs.
func TestI6ABookmarkKeepsNoSlab(t *testing.T) {
	bookmark := watchLine(Bookmark, `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7"}}`)
	object := watchLine(Added, `{"metadata":{"name":"longer-than-the-whole-bookmark-before-it-in-the-slab","resourceVersion":"8"}}`)
	r := NewReader(strings.NewReader(bookmark+object+bookmark+object), Options{})
	var left []int
	var versions []string
	for range 4 {
		f, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		left, versions = append(left, r.scanner.slab.Free()), append(versions, f.Object.ResourceVersion)
	}
	if got := strings.Join(versions, " "); got != "7 8 7 8" {
		t.Errorf("the versions became %q", got)
	}
	if left[0] != 0 || left[1] == 0 || left[2] != left[1] || left[3] >= left[2] {
		t.Errorf("after each frame the slab has %v bytes free", left)
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func TestAllocations(t *testing.T) {
	var text bytes.Buffer
	for i := range 100 {
		text.WriteString(watchLine(Modified, pod(i)))
	}
	r := NewReader(&loop{text: text.Bytes()}, Options{})
	got := testing.AllocsPerRun(2000, func() {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	})
	if got > 0.5 {
		t.Errorf("%v allocations a frame", got)
	}
}

func TestDepthDoesNotMatter(t *testing.T) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		for _, brackets := range []string{"[]", `{}`} {
			open, closing := strings.Repeat(brackets[:1], n), strings.Repeat(brackets[1:], n)
			if brackets == "{}" {
				open = strings.Repeat(`{"a":`, n) + "1"
			}
			line := `{"type":"ADDED","object":{"metadata":{"name":"deep"},"spec":` + open + closing + "}}\n"
			for _, front := range []string{"", " "} {
				f, err := NewReader(strings.NewReader(front+line), Options{}).Next()
				if err != nil || f.Object.Name != "deep" {
					t.Errorf("%d levels of %s: %v", n, brackets, err)
				}
			}
		}
	}
}
