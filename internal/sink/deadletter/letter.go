package deadletter

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Letter is what is known of one record that a sink will never take.
type Letter struct {
	ID     string    `json:"id"`   // of the letter: the same object in the same version has the same
	Time   time.Time `json:"time"` // when the sink rejected it
	Sink   string    `json:"sink"`
	Reason string    `json:"reason"` // "too_large", "invalid"
	Error  string    `json:"error"`

	// The record.
	Event             string    `json:"event"` // the message's id
	Cluster           string    `json:"cluster"`
	ClusterUID        string    `json:"clusterUid"`
	Stream            string    `json:"stream"`
	Namespaced        string    `json:"streamNamespace,omitzero"` // of a stream that is of one namespace
	Group             string    `json:"group,omitzero"`
	Version           string    `json:"version"`
	Resource          string    `json:"resource"`
	Kind              string    `json:"kind"`
	ClusterScoped     bool      `json:"clusterScoped,omitzero"`
	Namespace         string    `json:"namespace,omitzero"`
	Name              string    `json:"name,omitzero"`
	UID               string    `json:"uid,omitzero"`
	ResourceVersion   string    `json:"resourceVersion"`
	Op                string    `json:"op"`
	Received          time.Time `json:"received"`
	FinalStateUnknown bool      `json:"finalStateUnknown,omitzero"`
	Beside            bool      `json:"beside,omitzero"` // as the record's
	// The record's, of the same names.
	Actor      json.RawMessage `json:"actor,omitempty"`
	Involved   json.RawMessage `json:"involved,omitempty"`
	Changed    json.RawMessage `json:"changed,omitempty"`
	ChangedCut bool            `json:"changedCut,omitzero"`
	Snapshot   *Snapshot       `json:"snapshot,omitempty"`
	// Form is by which rules the object was cut and redacted; "" is not known.
	Form string `json:"form,omitzero"`

	// The message.
	Destination string        `json:"destination,omitzero"`
	Key         []byte        `json:"key,omitempty"` // base64
	Headers     []sink.Header `json:"headers,omitempty"`

	Body Body `json:"body"`
	// Value is the message's, nil for a tombstone, and Object and Before the record's, nil where it has none.
	Value  []byte `json:"-"`
	Object []byte `json:"-"`
	Before []byte `json:"-"`

	dir string // that it was listed in
}

// Snapshot is the comparison that the record belongs to.
type Snapshot struct {
	ID     string        `json:"id"`
	Reason change.Reason `json:"reason"`
}

// Body says where in the bytes after the first line value, object and the object before are. A length of -1 is one
// that is nil.
type Body struct {
	Value    int    `json:"value"`            // bytes, from the first one on
	ObjectAt int    `json:"objectAt"`         // within the value, or after it
	Object   int    `json:"object"`           // bytes
	Before   int    `json:"before,omitempty"` // bytes, the last ones
	Sum      string `json:"sum"`              // SHA-256 of all of them, hexadecimal
}

// ObjectKey names the object.
func (l *Letter) ObjectKey() change.Key { return change.Key{Namespace: l.Namespace, Name: l.Name} }

// newLetter describes the record and the message that was made of it.
func newLetter(o *Options, rec *change.Record, msg *sink.Message, rejected *sink.RejectedError) *Letter {
	clusterUID, res := cmp.Or(rec.Epoch, o.ClusterUID), rec.Stream.Resource
	l := &Letter{
		ID: idOf(rec, clusterUID), Time: o.now().UTC(), Sink: o.Sink, Reason: rejected.Reason, Error: rejected.Err.Error(),
		Event: msg.ID, Cluster: o.Cluster, ClusterUID: clusterUID, Stream: rec.Stream.String(), Namespaced: rec.Stream.Namespace,
		Group: res.Group, Version: res.Version, Resource: res.Name, Kind: res.Kind, ClusterScoped: res.ClusterScoped,
		Namespace: rec.Key.Namespace, Name: rec.Key.Name, UID: rec.UID, ResourceVersion: rec.ResourceVersion, Op: rec.Op.String(),
		Received: rec.Received, FinalStateUnknown: rec.FinalStateUnknown, Beside: rec.DuringSnapshot, Actor: rec.Actor, Involved: rec.Involved, Changed: rec.Changed, ChangedCut: rec.ChangedCut,
		Destination: msg.Destination, Key: msg.Key, Headers: msg.Headers, Value: msg.Value, Object: rec.Object, Before: rec.Before,
	}
	if o.Form != nil {
		l.Form = o.Form(rec.Stream)
	}
	if rec.Snapshot != nil {
		l.Snapshot = &Snapshot{ID: rec.Snapshot.ID, Reason: rec.Snapshot.Reason}
	}
	return l
}

// idOf is the same for all records that tell of the same state of an object, so that a state which a full snapshot
// tells again, or which comes again after a crash, is kept once. It is short enough for a command line.
func idOf(rec *change.Record, clusterUID string) string {
	id := rec.ID(clusterUID)
	if rec.Op.OfObject() {
		id.Snapshot = ""
		if rec.Op != change.Deleted {
			id.Op = change.Updated
		}
	}
	sum := sha256.Sum256([]byte(id.String()))
	return hex.EncodeToString(sum[:10])
}

// Record makes the letter's record anew, for its sink alone. The stream's name is the letter's.
func (l *Letter) Record(clusterUID string) *change.Record {
	rec := &change.Record{
		Stream: &change.Stream{
			Resource:  change.Resource{Group: l.Group, Version: l.Version, Name: l.Resource, Kind: l.Kind, ClusterScoped: l.ClusterScoped},
			Namespace: l.Namespaced,
		},
		Op: change.ParseOp(l.Op), Key: l.ObjectKey(), UID: l.UID, ResourceVersion: l.ResourceVersion, Object: l.Object, Before: l.Before,
		Received: l.Received, FinalStateUnknown: l.FinalStateUnknown, DuringSnapshot: l.Beside, Actor: l.Actor, Involved: l.Involved, Changed: l.Changed, ChangedCut: l.ChangedCut, Sink: l.Sink, Form: l.Form,
	}
	if l.ClusterUID != clusterUID {
		rec.Epoch = l.ClusterUID
	}
	if l.Snapshot != nil {
		rec.Snapshot = &change.Snapshot{ID: l.Snapshot.ID, Reason: l.Snapshot.Reason}
	}
	return rec
}

// encode returns the file's two parts: the first line, and what comes after it.
func (l *Letter) encode() (line []byte, body [][]byte, err error) {
	l.Body = Body{Value: length(l.Value), Object: length(l.Object), Before: len(l.Before)}
	body = append(body, l.Value)
	if l.Object != nil {
		// Formats splice the object into the value as it came.
		if l.Body.ObjectAt = bytes.Index(l.Value, l.Object); l.Body.ObjectAt < 0 {
			l.Body.ObjectAt = len(l.Value)
			body = append(body, l.Object)
		}
	}
	if l.Before != nil {
		body = append(body, l.Before)
	}
	l.Body.Sum = sum(body...)
	line, err = json.Marshal(l)
	return append(line, '\n'), body, err
}

func length(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

func sum(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// readHead reads the first line, and leaves r after it.
func readHead(r *bufio.Reader) (*Letter, error) {
	line, err := r.ReadBytes('\n')
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("its first line is incomplete: %w", err)
	}
	l := new(Letter)
	if err := json.Unmarshal(line, l); err != nil {
		return nil, fmt.Errorf("its first line: %w", err)
	}
	return l, nil
}

// readBody reads value, object and the object before.
func (l *Letter) readBody(r io.Reader) error {
	rest, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	value, object, before := max(0, l.Body.Value), max(0, l.Body.Object), len(rest)-l.Body.Before
	if sum(rest) != l.Body.Sum || value > len(rest) || before < 0 || before > len(rest) || l.Body.ObjectAt < 0 || l.Body.ObjectAt > len(rest)-object {
		return errors.New("its content is not what was written")
	}
	if l.Body.Value >= 0 {
		l.Value = rest[:value:value]
	}
	if l.Body.Object >= 0 {
		l.Object = rest[l.Body.ObjectAt : l.Body.ObjectAt+object : l.Body.ObjectAt+object]
	}
	if l.Body.Before > 0 {
		l.Before = rest[before:]
	}
	return nil
}

// Document is the whole letter as one JSON value: value is the message's where that is JSON; where it is not, as with
// an id of a schema registry before it, valueBase64 is, and object and before are those of the record. A tombstone has
// none of them.
func (l *Letter) Document() ([]byte, error) {
	document := struct {
		*Letter
		Body        *Body           `json:"body,omitempty"` // of the file, which this is not
		Value       json.RawMessage `json:"value,omitempty"`
		ValueBase64 []byte          `json:"valueBase64,omitempty"`
		Object      json.RawMessage `json:"object,omitempty"`
		Before      json.RawMessage `json:"before,omitempty"`
	}{Letter: l}
	switch {
	case json.Valid(l.Value):
		document.Value = l.Value
	case l.Value != nil:
		document.ValueBase64, document.Object, document.Before = l.Value, valid(l.Object), valid(l.Before)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(document)
	return out.Bytes(), err
}

// valid is the text where it is JSON, or else nil.
func valid(text []byte) json.RawMessage {
	if json.Valid(text) {
		return text
	}
	return nil
}

// block is what a file system gives out, mostly; a letter's first line is less.
const block = 4 << 10

// onDisk is what a file of so many bytes takes, about.
func onDisk(bytes int64) int64 { return (bytes + block - 1) / block * block }

// size is what the letters take, in bytes.
func (o *Options) size() (all int64, err error) {
	names, err := o.Files()
	for _, name := range names {
		info, gone := os.Stat(filepath.Join(o.Dir, name))
		switch {
		case gone == nil:
			all += onDisk(info.Size())
		case !errors.Is(gone, fs.ErrNotExist): // else it was sent again meanwhile
			err = errors.Join(err, gone)
		}
	}
	return all, err
}

// minFree is how many bytes stay free on the volume: the saved state is mostly on the same one, and needs as much.
const minFree = 64 << 20

// Options says whose letters a directory has.
type Options struct {
	Dir        string // of the sink alone; it is made with the first letter
	Sink       string
	Cluster    string // the name
	ClusterUID string // the uid of namespace kube-system
	// Bytes are what the letters may take on disk, about; 0 is no limit. Whoever may write objects decides how much is
	// rejected, and must not fill the volume of the saved state.
	Bytes int64
	// Form says by which rules the stream's objects are cut and redacted; nil is not known.
	Form func(*change.Stream) string
	// Changed is told the name of each file that was made, written or removed here, as Files has it, when that is
	// durable; nil is nobody.
	Changed func(name string)

	floor uint64 // bytes that stay free
	usage func(dir string) (disk.Usage, error)
	now   func() time.Time
}

const (
	suffix = ".letter" // of a letter's file
	// claimedName is the directory of the letter that is on its way to the sink again, and of one that is being
	// written.
	claimedName = "claimed"
)

// Files are the names of the letters' files below the directory, for who keeps a copy.
func (o *Options) Files() ([]string, error) {
	names, err := letterNames(o.Dir)
	claimed, claimedErr := letterNames(filepath.Join(o.Dir, claimedName))
	for _, name := range claimed {
		names = append(names, filepath.Join(claimedName, name))
	}
	return names, errors.Join(err, claimedErr)
}

func letterNames(dir string) ([]string, error) {
	return namesIn(dir, func(entry fs.DirEntry) bool { return strings.HasSuffix(entry.Name(), suffix) && !entry.IsDir() })
}

// namesIn are the names of those in a directory that are wanted. One that is not there has none.
func namesIn(dir string, wanted func(fs.DirEntry) bool) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if wanted(entry) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}
