package e2e

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// event is one CloudEvent as any consumer would read it.
type event struct {
	SpecVersion       string          `json:"specversion"`
	ID                string          `json:"id"`
	Source            string          `json:"source"`
	Type              string          `json:"type"`
	Group             string          `json:"group"`
	Resource          string          `json:"resource"`
	Namespace         string          `json:"namespace"`
	Name              string          `json:"name"`
	UID               string          `json:"uid"`
	ResourceVersion   string          `json:"resourceversion"`
	FinalStateUnknown bool            `json:"finalstateunknown"`
	Snapshot          string          `json:"snapshot"`
	Reason            string          `json:"reason"`
	Replayed          string          `json:"replayed"`
	Before            string          `json:"before"`
	Changed           string          `json:"changed"`
	Actor             string          `json:"actor"`
	Involved          string          `json:"involved"`
	Time              time.Time       `json:"time"`
	Data              json.RawMessage `json:"data"`

	stored time.Time // by the server, in a stream
	place  int       // the line of the file, or the sequence of the stream, from 1
	header string    // the id beside the message, where the sink has such a thing
	own    string    // the header that a test configures
	routed string    // the subject, where the sink has such a thing
	seat   *seat     // in Kafka
}

// ownHeader is a header that a test may configure.
const ownHeader = "own"

// content is what the judge reads of an object.
type content struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Name            string            `json:"name"`
		Namespace       string            `json:"namespace"`
		UID             string            `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
}

// frame is what a snapshot's begin and end, and a gap, say of themselves.
type frame struct {
	ResourceVersion string `json:"resourceVersion"`
	LastDelivered   string `json:"lastDelivered"`
	Reason          string `json:"reason"`
}

func parseEvent(text []byte) (event, error) {
	var e event
	if err := json.Unmarshal(text, &e); err != nil {
		return event{}, fmt.Errorf("%w in %.200q", err, text)
	}
	if e.SpecVersion != "1.0" || e.ID == "" || !strings.HasPrefix(e.Type, "dev.kubecdc.") {
		return event{}, fmt.Errorf("no event of kubecdc: %.200q", text)
	}
	return e, nil
}

// op is the operation: "added", "snapshot.begin".
func (e *event) op() string { return strings.TrimPrefix(e.Type, "dev.kubecdc.") }

// kind is the resource in kubectl's form.
func (e *event) kind() string {
	if e.Group == "" {
		return e.Resource
	}
	return e.Resource + "." + e.Group
}

func (e *event) key() string { return joined(e.Namespace, e.Name) }

// version is the resourceVersion as the number that it is, 0 where there is none.
func (e *event) version() uint64 { return parseVersion(e.ResourceVersion) }

func (e *event) String() string {
	text := fmt.Sprintf("%6d  %-14s %s %s uid=%s rv=%s", e.place, e.op(), e.kind(), e.key(), e.UID, e.ResourceVersion)
	if e.FinalStateUnknown {
		text += " finalstateunknown"
	}
	if e.Snapshot != "" {
		text += " snapshot=" + e.Snapshot + " reason=" + e.Reason
	}
	if e.seat != nil {
		text += fmt.Sprintf(" at %s/%d@%d", e.seat.topic, e.seat.partition, e.seat.offset)
	}
	return text
}

func joined(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func parseVersion(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// readLines returns the events of the file from the byte offset on, and the offset after the last whole line.
func readLines(path string, offset int64, line int) ([]event, int64, error) {
	text, err := readFrom(path, offset)
	if err != nil {
		return nil, offset, err
	}
	var events []event
	for rest := text; ; {
		one, more, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			return events, offset, nil
		}
		e, err := parseEvent(one)
		if err != nil {
			return nil, offset, fmt.Errorf("line %d of %s: %w", line+len(events), path, err)
		}
		e.place = line + len(events)
		events = append(events, e)
		offset, rest = offset+int64(len(one))+1, more
	}
}

// readFrom returns what is after the offset; a file that is not there is empty.
func readFrom(path string, offset int64) ([]byte, error) {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

// route is the subject that the object's events must have.
func route(cluster string, e *event) string {
	token := func(value, none string) string {
		if value == "" {
			return none
		}
		return escape(value)
	}
	return strings.Join([]string{"k8s", escape(cluster), token(e.Group, "core"), escape(e.Resource), token(e.Namespace, "-"), token(e.Name, "-")}, ".")
}

// escape makes a value one token of a subject: '.' becomes '_', and all but letters, digits and '-' becomes "=XX".
func escape(value string) string {
	if value == "-" {
		return "=2D"
	}
	var token strings.Builder
	for _, b := range []byte(value) {
		switch {
		case b == '.':
			token.WriteByte('_')
		case b == '-', '0' <= b && b <= '9', 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z':
			token.WriteByte(b)
		default:
			token.WriteString("=" + strings.ToUpper(hex.EncodeToString([]byte{b})))
		}
	}
	return token.String()
}

func (e *event) frame() (frame, error) {
	var f frame
	if err := json.Unmarshal(e.Data, &f); err != nil {
		return frame{}, fmt.Errorf("%s has no frame: %w", e.op(), err)
	}
	return f, nil
}
