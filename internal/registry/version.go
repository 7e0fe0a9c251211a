package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/typed"
)

// state is how far a resource's schema is. Only the goroutine of Run has it.
type state struct {
	due       time.Time // when it is to be looked at
	wait      time.Duration
	stamp     string // of the API server's type
	key       registration
	value     registration
	confirmed time.Time
	behind    error // why a newer version is not used
	told      string
}

// registration is a schema in a subject.
type registration struct {
	subject string
	id      uint32
	schema  []byte
}

// see brings the entry up to date: its ids are confirmed, and its type is the server's. An error leaves the schema that
// there is: it has a place for everything.
func (s *Schemas) see(ctx context.Context, name string, e *entry) error {
	resource, schema := s.at(e)
	if schema != nil && time.Since(e.confirmed) >= confirmEvery {
		same, err := s.confirm(ctx, e)
		if err != nil {
			return err
		}
		if !same {
			s.put(e, nil)
			s.Observer.SchemaReplaced(name, e.value.subject, e.value.id, e.confirmed)
			e.state, schema = state{}, nil
		}
	}
	of, stamp, err := s.Types.Of(ctx, resource, e.stamp)
	if err != nil && schema != nil {
		return nil // with what is known
	}
	if err == nil && stamp == e.stamp && schema != nil {
		return nil
	}
	made, madeErr := s.compose(ctx, e, &resource, of, err)
	if madeErr != nil {
		return madeErr
	}
	if err == nil {
		e.stamp = stamp
	}
	e.behind, e.confirmed = nil, time.Now()
	s.put(e, made)
	return nil
}

// confirm asks the registry whether it still has the very schemas under their ids.
func (s *Schemas) confirm(ctx context.Context, e *entry) (same bool, err error) {
	for _, r := range []registration{e.key, e.value} {
		if r.subject == "" {
			continue
		}
		id, found, err := s.Client.Find(ctx, r.subject, r.schema)
		if err != nil {
			return false, err
		}
		if !found || id != r.id {
			return false, nil
		}
	}
	e.confirmed = time.Now()
	return true, nil
}

// compose finds or registers the schemas of the resource. The server's type is of, unless typeErr says why it is not
// told: then what is registered has to do.
func (s *Schemas) compose(
	ctx context.Context, e *entry, resource *change.Resource, of *typed.Type, typeErr error,
) (*encode.Schema, error) {
	_, valueSubject := s.Subjects(resource)
	key, err := s.keyOf(ctx, resource)
	if err == nil && key.subject != "" && key.id == 0 {
		key, err = s.add(ctx, key.subject, key.schema, true)
	}
	if err != nil {
		return nil, err
	}
	present, older, err := s.registered(ctx, valueSubject)
	if err != nil {
		return nil, err
	}
	if older == nil && typeErr != nil {
		return nil, typeErr
	}
	value, valueType := present, older
	if typeErr == nil {
		merged := typed.Merge(older, encode.ValueType(s.Format, resource, of))
		if value, err = s.newest(ctx, present, older, merged); err != nil {
			return nil, err
		}
		if valueType = merged; !s.Register {
			valueType = older
		}
	}
	e.key, e.value = key, value
	return &encode.Schema{Key: key.id, Value: value.id, Type: valueType}, nil
}

// errOther says whose the newest version of a subject is not.
var errOther = errors.New("its newest version is not the exporter's: choose another kafka.registry.subject, another topic, or delete the subject")

// registered is the newest version of the subject. Its type is nil where there is none.
func (s *Schemas) registered(ctx context.Context, subject string) (registration, *typed.Type, error) {
	latest, err := s.Client.Latest(ctx, subject)
	if err != nil || latest == nil {
		return registration{subject: subject}, nil, err
	}
	of, err := parse(subject, latest.Schema)
	if err != nil {
		return registration{}, nil, err
	}
	return registration{subject, latest.ID, latest.Schema}, of, nil
}

// parse is the type of a registered schema, if that is the exporter's.
func parse(subject string, schema []byte) (*typed.Type, error) {
	of, err := typed.ParseAvro(schema)
	if err != nil {
		return nil, &Error{Doing: "read subject " + subject, Err: fmt.Errorf("%w (%w)", errOther, err), Refused: true}
	}
	return of, nil
}

// errUnregistered says what to do where the exporter may not register.
var errUnregistered = errors.New("it has no version: register what `exporter schema show` prints with --sink, or set register: true")

// newest is the registration of the merged type, which has the columns of the older one, if that is registered.
func (s *Schemas) newest(ctx context.Context, present registration, older, merged *typed.Type) (registration, error) {
	text := merged.Avro()
	switch {
	case older != nil && (!s.Register || bytes.Equal(older.Avro(), text)):
		return present, nil
	case !s.Register:
		return present, &Error{Doing: "read subject " + present.subject, Err: errUnregistered, Refused: true}
	}
	return s.add(ctx, present.subject, text, older == nil)
}

// add registers a version.
func (s *Schemas) add(ctx context.Context, subject string, text []byte, first bool) (registration, error) {
	id, err := s.Client.Register(ctx, subject, text)
	if err == nil && first && s.Compatibility != "" {
		err = s.Client.SetCompatibility(ctx, subject, s.Compatibility)
	}
	return registration{subject, id, text}, err
}

// keyOf is the schema of the resource's keys, which never changes. Its id is 0 where it is to be registered, and its
// subject "" where keys have none.
func (s *Schemas) keyOf(ctx context.Context, resource *change.Resource) (key registration, err error) {
	if key.subject, _ = s.Subjects(resource); key.subject == "" {
		return key, nil
	}
	key.schema = encode.KeySchema(resource)
	found := false
	key.id, found, err = s.Client.Find(ctx, key.subject, key.schema)
	if err == nil && !found && !s.Register {
		err = &Error{Doing: "read subject " + key.subject, Err: errUnregistered, Refused: true}
	}
	return key, err
}

// note says when the entry is to be looked at again, and tells what came of it.
func (s *Schemas) note(ctx context.Context, name string, e *entry, err error) {
	if ctx.Err() != nil {
		return
	}
	_, schema := s.at(e)
	switch {
	case err == nil:
		e.wait = 0
		e.due = time.Now().Add(min(s.Interval, confirmEvery))
	case isRefused(err):
		e.due = time.Now().Add(seldomRetry)
	default:
		e.wait = min(max(2*e.wait, firstRetry), lastRetry)
		e.due = time.Now().Add(e.wait)
	}
	if schema == nil {
		s.Observer.SchemaWaits(name, err, isRefused(err))
		return
	}
	s.Observer.SchemaKnown(name, e.value.subject, schema.Value, err)
}
