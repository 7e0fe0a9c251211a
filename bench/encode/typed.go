package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/avro"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/format/openapi"
	"github.com/kubecdc/kubecdc/test/objects"
)

// registered are the schemas of Pods as a registry would have them.
type registered struct{ schema *encode.Schema }

func (r registered) Of(*change.Resource) *encode.Schema { return r.schema }

func newRegistered() (registered, error) {
	documents, err := objects.Documents()
	if err != nil {
		return registered{}, err
	}
	document, err := openapi.Read(bytes.NewReader(documents["v1"]))
	if err != nil {
		return registered{}, err
	}
	of := document.Type("", "v1", "Pod", openapi.Options{})
	of = encode.ValueType(encode.FormatDebezium, pods(), of, false)
	return registered{&encode.Schema{Key: 1, Value: 2, Type: of}}, nil
}

func pods() *change.Resource { return &change.Resource{Version: "v1", Name: "pods", Kind: "Pod"} }

// typedContestants are Debezium's envelope as Avro, and what an exporter pays that makes values of
// the JSON and lets a library make Avro of them. The last one reads Avro with the library, and writes it again.
func typedContestants(ctx context.Context) ([]contestant, error) {
	schemas, err := newRegistered()
	if err != nil {
		return nil, err
	}
	encoder, err := newEncoder(encode.FormatDebezium, schemas)
	if err != nil {
		return nil, err
	}
	plain, err1 := oneValue(ctx, nil)
	message, schema, err2 := avroMessage(ctx)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	var prepared any
	if _, err := schema.Decode(message, &prepared); err != nil {
		return nil, fmt.Errorf("read a value with the library: %w", err)
	}
	library := func(name string, unmarshal func(value *any) error) contestant {
		return contestant{name: name, events: func(b testing.TB, n int) {
			for range n {
				var value any
				err1 := unmarshal(&value)
				if _, err2 := schema.Encode(prepared); err1 != nil || err2 != nil {
					b.Fatal(err1, err2)
				}
			}
		}}
	}
	ours := contestant{name: "debezium_avro", events: func(b testing.TB, n int) { encodeAll(b, encoder, nil, n) }}
	return []contestant{ours, library("json_unmarshal_twmb_encode", func(value *any) error { return json.Unmarshal(plain, value) }),
		library("twmb_decode_twmb_encode", func(value *any) error { _, err := schema.Decode(message, value); return err })}, nil
}

// avroMessage is a value in Avro without its id, and its schema as the library reads it.
func avroMessage(ctx context.Context) ([]byte, *avro.Schema, error) {
	schemas, err := newRegistered()
	if err != nil {
		return nil, nil, err
	}
	value, err := oneValue(ctx, schemas)
	if err != nil {
		return nil, nil, err
	}
	schema, err := avro.Parse(string(schemas.schema.Type.Avro()))
	if err != nil {
		return nil, nil, fmt.Errorf("read the schema: %w", err)
	}
	_, body, err := encode.SchemaID(value)
	return body, schema, err
}

// oneValue is what an update of the Pod becomes.
func oneValue(ctx context.Context, schemas encode.Schemas) ([]byte, error) {
	encoder, err := newEncoder(encode.FormatDebezium, schemas)
	if err != nil {
		return nil, err
	}
	rec := event(pod())
	messages, err := encoder.Encode(ctx, nil, &rec)
	if err != nil {
		return nil, err
	}
	return messages[0].Value, nil
}

// fasterThan is how many times less Avro costs than another way to it.
func fasterThan(other string, costs map[string]float64) harness.Figure {
	return harness.Figure{
		Name: "encode.debezium_avro_times_faster_than_" + other, Value: costs[other] / costs["debezium_avro"], Unit: "times faster than encode." + other,
	}
}

// typedFigures are how many times faster Avro is made than by the library's values, and how large it is beside JSON: a
// message alone, plain and compressed.
func typedFigures(ctx context.Context, all []contestant) ([]harness.Figure, error) {
	costs := map[string]float64{}
	for _, c := range all {
		costs[c.name] = harness.Median(c.costs)
	}
	schemas, err := newRegistered()
	if err != nil {
		return nil, err
	}
	small, err1 := oneValue(ctx, schemas)
	large, err2 := oneValue(ctx, nil)
	packer, err3 := zstd.NewWriter(nil)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	ratio := func(a, b []byte) float64 { return float64(len(a)) / float64(len(b)) }
	return []harness.Figure{
		fasterThan("json_unmarshal_twmb_encode", costs),
		fasterThan("twmb_decode_twmb_encode", costs),
		{Name: "avro.bytes_ratio", Value: ratio(packer.EncodeAll(small, nil), packer.EncodeAll(large, nil)), Unit: "ratio"},
		{Name: "avro.plain_bytes_ratio", Value: ratio(small, large), Unit: "ratio"},
	}, nil
}
