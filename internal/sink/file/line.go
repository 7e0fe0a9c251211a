package file

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
)

// appendLine appends a value as one line; a tombstone leaves none. JSON has no newline within a string, so one that is
// there stands between two tokens, where a space says the same.
func appendLine(dst, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	start := len(dst)
	dst = append(dst, value...)
	for rest := dst[start:]; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return append(dst, '\n')
		}
		rest[i] = ' '
		rest = rest[i+1:]
	}
}

// idOf is the string "id" on the top level of the line, or "" if it has none that kubecdc wrote.
func idOf(line []byte) (id string) {
	whole := scan.Members(line, func(name string, value []byte) {
		if name == "id" && id == "" {
			id = ourID(value)
		}
	})
	if !whole {
		return ""
	}
	return id
}

func ourID(value []byte) string {
	var id string
	if json.Unmarshal(value, &id) != nil {
		return ""
	}
	if _, err := change.ParseID(id); err != nil {
		return ""
	}
	return id
}

// readLines gives the ids of the whole lines to found, and returns how many bytes these lines have.
func readLines(r io.Reader, found func(id string)) (length int64, err error) {
	err = eachLine(r, func(line []byte) error {
		if id := idOf(line); id != "" {
			found(id)
		}
		length += int64(len(line))
		return nil
	})
	return length, err
}

// eachLine hands on the whole lines, each with its newline. It ends without error before a line that has no newline, or
// a zero byte: file systems fill with those what a power failure took.
func eachLine(r io.Reader, each func(line []byte) error) error {
	b := bufio.NewReaderSize(r, 256<<10)
	var line []byte
	for {
		part, err := b.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF || err == nil && bytes.IndexByte(line, 0) >= 0:
			return nil
		case err != nil:
			return err
		}
		if err := each(line); err != nil {
			return err
		}
		line = line[:0]
	}
}
