package typed

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// maxRecordName is how long the last part of a record's name may be.
const maxRecordName = 128

// allowed makes a text a name as Avro wants it.
func allowed(text string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, text)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return "_" + name
	}
	return name
}

// hashed is a name with a hash of what it stands for.
func hashed(name, of string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(of)) // never fails
	return fmt.Sprintf("%s_%08x", name, h.Sum32())
}

// RecordName makes a name of a record of one of a schema, such as io.k8s.api.core.v1.PodSpec.
func RecordName(of string) string {
	parts := strings.Split(of, ".")
	if len(parts) > 16 || len(of) > 4*maxRecordName {
		parts = []string{of}
	}
	for i := range parts {
		parts[i] = allowed(parts[i])
	}
	last := len(parts) - 1
	parts[last] = short(parts[last])
	return strings.Join(parts, ".")
}

// WithinName is the name of a record that a record has in a field.
func WithinName(record, field string) string {
	at := strings.LastIndexByte(record, '.') + 1
	return record[:at] + short(record[at:]+"_"+allowed(field))
}

// short cuts a name that is too long, with a hash of all of it.
func short(name string) string {
	const hash = 9
	if len(name) <= maxRecordName {
		return name
	}
	return hashed(name[:maxRecordName-hash], name)
}

// Names gives each record a name of its own.
type Names map[string]bool

// Take is the name, with a number after it where it is taken.
func (n Names) Take(name string) string {
	free := name
	for i := 2; n[free]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	n[free] = true
	return free
}
