package openapi

import (
	"strings"
	"testing"
)

// things have one of each.
const things = `{"components":{"schemas":{
 "io.example-x.v1.Thing":{"type":"object","x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"Thing"}],"properties":{
  "spec":{"type":"object","properties":{
    "replicas":{"type":"integer","format":"int32"},
    "port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
    "a-b":{"type":"string"}, "a_b":{"type":"boolean"}, "$ref":{"type":"number"},
    "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
    "at":{"$ref":"#/components/schemas/meta.MicroTime"},
    "nullable":{"type":"array","items":{"type":"string","nullable":true}},
    "same":{"allOf":[{"$ref":"#/components/schemas/meta.Small"}]},
    "again":{"type":"object","additionalProperties":{"$ref":"#/components/schemas/meta.Small"}},
    "node":{"$ref":"#/components/schemas/meta.Node"}}},
  "metadata":{"allOf":[{"$ref":"#/components/schemas/meta.Object"}]},
  "apiVersion":{"type":"string"}}},
 "meta.Object":{"type":"object","properties":{"name":{"type":"string"},"managedFields":{"type":"array","items":{"type":"object"}},
   "created":{"$ref":"#/components/schemas/meta.Time"},"cpu":{"$ref":"#/components/schemas/meta.Quantity"}}},
 "meta.Small":{"type":"object","properties":{"x":{"type":"string"}}},
 "meta.Node":{"type":"object","properties":{"left":{"$ref":"#/components/schemas/meta.Leaf"},"x":{"type":"string"}}},
 "meta.Leaf":{"type":"object","properties":{"up":{"type":"array","items":{"$ref":"#/components/schemas/meta.Node"}}}},
 "meta.Quantity":{"oneOf":[{"type":"string"},{"type":"number"}]},
 "meta.MicroTime":{"type":"string","format":"date-time"},
 "meta.Time":{"type":"string","format":"date-time"}}}}`

const thingsAsAvro = `{"type":"record","name":"io.example_x.v1.Thing","fields":[
{"name":"kubecdc_rest","type":["null",{"type":"string","connect.name":"io.debezium.data.Json","kubecdc.type":"rest"}],"default":null},
{"name":"apiVersion","type":["null","string"],"default":null},
{"name":"metadata","type":["null",{"type":"record","name":"meta.Object","fields":[
{"name":"cpu","type":["null",{"type":"string","kubecdc.type":"quantity"}],"default":null},
{"name":"created","type":["null",{"type":"long","logicalType":"timestamp-micros","connect.name":"io.debezium.time.MicroTimestamp","kubecdc.digits":0}],"default":null},
{"name":"name","type":["null","string"],"default":null}]}],"default":null},
{"name":"spec","type":["null",{"type":"record","name":"io.example_x.v1.Thing_spec","fields":[
{"name":"_ref","kubecdc.name":"$ref","type":["null","double"],"default":null},
{"name":"a_b_2a89df63","kubecdc.name":"a-b","type":["null","string"],"default":null},
{"name":"a_b","type":["null","boolean"],"default":null},
{"name":"again","type":["null",{"type":"map","values":{"type":"record","name":"meta.Small","fields":[
{"name":"x","type":["null","string"],"default":null}]}}],"default":null},
{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros","connect.name":"io.debezium.time.MicroTimestamp","kubecdc.digits":6}],"default":null},
{"name":"free","type":["null",{"type":"string","connect.name":"io.debezium.data.Json","kubecdc.type":"json"}],"default":null},
{"name":"node","type":["null",{"type":"record","name":"meta.Node","fields":[
{"name":"left","type":["null",{"type":"record","name":"meta.Leaf","fields":[
{"name":"up","type":["null",{"type":"array","items":{"type":"string","connect.name":"io.debezium.data.Json","kubecdc.type":"json"}}],"default":null}]}],"default":null},
{"name":"x","type":["null","string"],"default":null}]}],"default":null},
{"name":"nullable","type":["null",{"type":"array","items":["null","string"]}],"default":null},
{"name":"port","type":["null",{"type":"string","kubecdc.type":"int-or-string"}],"default":null},
{"name":"replicas","type":["null","long"],"default":null},
{"name":"same","type":["null","meta.Small"],"default":null}]}],"default":null}]}`

func TestTypesOfADocument(t *testing.T) {
	d, err := Read(strings.NewReader(things))
	must(t, err)
	got := string(d.Type("g", "v1", "Thing", Options{}).Avro())
	if want := strings.ReplaceAll(thingsAsAvro, "\n", ""); got != want {
		t.Errorf("the schema is\n%s\nwant\n%s", strings.ReplaceAll(got, `,{"name"`, ",\n{\"name\""), thingsAsAvro)
	}
	for range 5 {
		if again := string(d.Type("g", "v1", "Thing", Options{}).Avro()); again != got {
			t.Errorf("the schema is another one each time: %s", again)
		}
	}
	if with := string(d.Type("g", "v1", "Thing", Options{ManagedFields: true}).Avro()); !strings.Contains(with, `"managedFields"`) {
		t.Errorf("there are no managedFields in %s", with)
	}
	if of := d.Type("g", "v2", "Thing", Options{}); of != nil {
		t.Errorf("there is a type of another version: %+v", of)
	}
}
