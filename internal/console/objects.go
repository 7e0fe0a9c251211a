package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/kubecdc/kubecdc/internal/control"
)

func EncodeObjects(objects iter.Seq2[control.Object, error], out io.Writer) (n int, err error) {
	encoder := json.NewEncoder(out)
	for object, err := range objects {
		if err != nil {
			return n, err
		}
		if err := encoder.Encode(object); err != nil {
			return n, fmt.Errorf("write the inventory: %w", err)
		}
		n++
	}
	return n, nil
}

// alignEvery is how many lines of a table are held to find how wide its columns are (I6).
const alignEvery = 1000

func PrintObjects(objects iter.Seq2[control.Object, error], out io.Writer) (n int, err error) {
	table := newGrid(out)
	for object, err := range objects {
		if err != nil {
			return n, errors.Join(err, table.Flush())
		}
		if n == 0 {
			table.row("STREAM", "NAMESPACE", "NAME", "UID", "RESOURCEVERSION", "SINKS")
		}
		table.row(object.Stream, object.Namespace, object.Name, object.UID, object.ResourceVersion, strings.Join(object.Sinks, ","))
		if n++; n%alignEvery == 0 {
			if err := table.Flush(); err != nil {
				return n, fmt.Errorf("write the inventory: %w", err)
			}
		}
	}
	return n, table.Flush()
}

// parseObject keeps numbers as they are written.
func parseObject(text []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var object any
	if decoder.Decode(&object) != nil {
		return nil
	}
	return object
}
