package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/typed"
)

// Plan is what a run would do about the schemas of a resource.
type Plan struct {
	Key     uint32 // the id of the keys' schema; 0 is that there is none yet, or is to be none
	Subject string
	Version int // the newest registered one; 0 is none
	// Differences are those of the API server's type from the registered one.
	Differences []typed.Difference
	Adds        bool // a version is to be registered
}

// Plan asks what a run would do, and changes nothing. A refused *Error says that the registry would refuse it.
func (s *Schemas) Plan(ctx context.Context, resource *change.Resource) (*Plan, error) {
	of, _, err := s.Types.Of(ctx, *resource, "")
	if err != nil {
		return nil, err
	}
	key, err := s.keyOf(ctx, resource)
	if err == nil && key.subject != "" && key.id == 0 {
		err = s.Client.Compatible(ctx, key.subject, key.schema)
	}
	if err != nil {
		return nil, err
	}
	newer := encode.ValueType(s.Format, resource, of)
	_, subject := s.Subjects(resource)
	latest, err := s.Client.Latest(ctx, subject)
	if err != nil {
		return nil, err
	}
	if latest == nil {
		if !s.Register {
			return nil, &Error{Doing: "read subject " + subject, Err: errUnregistered, Refused: true}
		}
		return &Plan{Key: key.id, Subject: subject, Adds: true}, nil
	}
	older, err := parse(subject, latest.Schema)
	if err != nil {
		return nil, err
	}
	text := typed.Merge(older, newer).Avro()
	plan := &Plan{
		Key: key.id, Subject: subject, Version: latest.Number, Differences: typed.Diff(older, newer),
		Adds: s.Register && !bytes.Equal(older.Avro(), text),
	}
	if plan.Adds {
		err = s.Client.Compatible(ctx, subject, text)
	}
	return plan, err
}

// errIncompatible says that a registry would refuse a version.
var errIncompatible = errors.New("a new version would be incompatible by the registry's rules: choose another subject or " +
	"topic, or lower the subject's compatibility")

// Compatible returns a refused *Error where the registry would not take the schema as a version of the subject. A
// registry that does not check says nothing.
func (c *Client) Compatible(ctx context.Context, subject string, schema []byte) error {
	doing := "look whether a new version of subject " + subject + " is compatible"
	said, err := c.sr.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), subject, -1, sent(schema))
	switch {
	case isUnknown(err):
		return nil
	case err != nil:
		return explain(doing, err)
	case !said.Is && len(said.Messages) > 0:
		return &Error{Doing: doing, Err: fmt.Errorf("%.500s: %w", strings.Join(said.Messages, "; "), errIncompatible), Refused: true}
	case !said.Is:
		return &Error{Doing: doing, Err: errIncompatible, Refused: true}
	}
	return nil
}
