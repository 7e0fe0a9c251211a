package registry

import (
	"context"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/typed"
)

// mostDecoders bounds how many schemas a reader keeps.
const mostDecoders = 1000

// Reader gives the messages of a log as they would be without a registry. What has no schema stays as it is.
type Reader struct {
	sink.Reader
	client   *Client
	decoders map[uint32]*typed.Decoder
	value    []byte
}

// NewReader reads the log of the reader.
func NewReader(of sink.Reader, client *Client) *Reader {
	return &Reader{Reader: of, client: client, decoders: map[uint32]*typed.Decoder{}}
}

// Read is as in sink.Reader. It fails where the registry does not have a schema.
func (r *Reader) Read(ctx context.Context, each func(*sink.Stored) error) error {
	return r.Reader.Read(ctx, func(m *sink.Stored) error {
		if err := r.plain(ctx, m); err != nil {
			return fmt.Errorf("read %s: %w", m.Place, err)
		}
		return each(m)
	})
}

// plain makes the message JSON.
func (r *Reader) plain(ctx context.Context, m *sink.Stored) error {
	if _, body, err := encode.SchemaID(m.Key); err == nil {
		if m.Key, err = encode.ReadKey(body); err != nil {
			return err
		}
	}
	id, body, err := encode.SchemaID(m.Value)
	if err != nil {
		return nil
	}
	decoder, err := r.decoder(ctx, id)
	if err != nil {
		return err
	}
	r.value, err = decoder.Append(r.value[:0], body)
	m.Value = r.value
	return err
}

// decoder is the one of the schema with the id.
func (r *Reader) decoder(ctx context.Context, id uint32) (*typed.Decoder, error) {
	if known := r.decoders[id]; known != nil {
		return known, nil
	}
	text, err := r.client.Schema(ctx, id)
	if err != nil {
		return nil, err
	}
	of, err := typed.ParseAvro(text)
	if err != nil {
		return nil, fmt.Errorf("schema %d: %w", id, err)
	}
	if len(r.decoders) >= mostDecoders {
		clear(r.decoders)
	}
	r.decoders[id] = typed.NewDecoder(of)
	return r.decoders[id], nil
}
