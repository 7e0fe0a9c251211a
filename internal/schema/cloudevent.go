package schema

import "github.com/kubecdc/kubecdc/internal/change"

// cloudEvent is an event of CloudEvents 1.0 in its JSON format.
func (b book) cloudEvent() definition {
	attributes := b.attributes()
	attributes["finalstateunknown"] = described(definition{"const": true}, "no watch saw the delete")
	attributes["beforeomitted"], attributes["changedcut"] = beforeOmitted(true), changedCut(true)
	attributes["type"] = types(anyOp)
	attributes["change"] = described(id(), "in an actor: the id of the change, where it is proven who made it")
	attributes["data"] = definition{"type": []string{"object", "array"}}
	d := b.fields("a record as a CloudEvent in structured mode", attributes, append(optionalAttributes(), "change", "data")...)
	d["propertyNames"] = definition{"pattern": "^[a-z0-9]+$"}
	d["allOf"] = append(b.shapes(), b.data()...)
	d["$defs"] = definition{Object: b.object(), Patch: b.patch(), Actor: b.told()}
	return d
}

// anObject refers to the object in the same schema.
func anObject() definition { return definition{"$ref": "#/$defs/" + Object} }

// patch is a JSON Patch (RFC 6902) with the operations that are used.
func (b book) patch() definition {
	pointer := described(definition{"type": "string", "pattern": "^(/([^~/]|~[01])*)+$"}, "a JSON Pointer (RFC 6901)")
	operation := b.fields("an operation", definition{
		"op": definition{"enum": []string{"add", "remove", "replace"}}, "path": pointer, "value": definition{},
	}, "value")
	operation["if"] = definition{"properties": definition{"op": definition{"const": "remove"}}}
	operation["else"] = definition{"required": []string{"value"}}
	return described(listOf(operation), "what has changed since version base: a JSON Patch")
}

// isPatch matches records that have a patch in the place of their object.
func isPatch() definition { return definition{"required": []string{"base"}} }

// headers are the attributes in binary mode, where every value is a text.
func (b book) headers() definition {
	attributes := b.attributes()
	attributes["finalstateunknown"] = definition{"const": "true"}
	attributes["beforeomitted"], attributes["changedcut"] = beforeOmitted("true"), changedCut("true")
	d := b.fields("the attributes of a CloudEvent in binary mode, without their prefix", attributes, optionalAttributes()...)
	d["propertyNames"] = definition{"pattern": "^[a-z0-9]+$"}
	d["allOf"] = b.shapes()
	return d
}

// attributes are CloudEvents' own and our extensions.
func (b book) attributes() definition {
	return definition{
		"specversion":     definition{"const": "1.0"},
		"id":              id(),
		"source":          described(definition{"type": "string", "pattern": "^/clusters/."}, "/clusters/ and the cluster"),
		"type":            types(isOfStream),
		"subject":         described(definition{"type": "string", "pattern": "^/apis?/"}, "the path of the object, or of the stream's collection, on the API server"),
		"time":            described(timestamp(), "when the exporter received the record"),
		"datacontenttype": described(definition{"enum": []string{"application/json", mediaPatch}}, "the latter with base"),
		"base":            described(version(), "in an update, if the sink asks for patches: the resourceVersion that data is a patch of"),
		"cluster":         name(),
		"group":           described(definition{"type": "string"}, "empty for the core group"),
		"version":         described(name(), "the served version that is watched"),
		"resource":        described(name(), "the plural, in lower case"),
		"namespace":       described(name(), "missing for cluster-scoped objects and for streams of all namespaces"),
		"name":            described(name(), "missing in stream-level records; in a gap of reason policy %sha256- and a hash if the object's name is too long"),
		"uid":             name(),
		"resourceversion": described(version(), "of the object, or of the stream in a stream-level record"),
		"snapshot":        described(name(), "the reconcile that the record belongs to; missing in a record of the watch"),
		"reason":          described(reasons(func(change.Reason) bool { return true }), "of that reconcile"),
		"trimmed":         trimmed(),
		"replayed":        replayed(),
		"before":          described(name(), "in an update, if it is kept: the object as it was delivered last, as JSON text, since attributes are scalars"),
		"changed":         described(name(), "if it is asked for: JSON Pointers of what differs from before, a list as JSON text"),
		"actor":           described(name(), "if it is asked for: the newest entries of managedFields, a list as JSON text of objects with manager, operation, subresource and time"),
		"involved":        described(name(), "in an Event, if it is asked for: what is known of the object that it is about, an object as JSON text with resourceVersion, labels and ownerReferences, or with unknown"),
	}
}

// mediaPatch is the media type of a JSON Patch (RFC 6902, section 6).
const mediaPatch = "application/json-patch+json"

func optionalAttributes() []string {
	return []string{"datacontenttype", "base", "namespace", "name", "uid", "resourceversion", "finalstateunknown", "snapshot", "reason", "before", "changed", "changedcut", "actor", "involved", "trimmed", "beforeomitted", "replayed"}
}

// shapes say which attributes a record of each operation has.
func (b book) shapes() []any {
	object := func(op change.Op) bool { return op.OfObject() }
	speaks := func(op change.Op) bool { return isOfStream(op) && !op.OfObject() }
	return []any{
		definition{"if": ofType(object), "then": definition{"required": []string{"name", "resourceversion"}}},
		definition{
			"if":   ofType(func(op change.Op) bool { return speaks(op) || op == change.Replaced || op == change.Sync }),
			"then": definition{"required": []string{"snapshot", "reason", "resourceversion"}},
		},
		definition{"if": ofType(object), "then": definition{"dependentRequired": definition{"snapshot": []string{"reason"}}}},
		definition{
			"if": isPatch(),
			"then": definition{
				"properties": definition{"type": types(func(op change.Op) bool { return op == change.Updated }), "datacontenttype": definition{"const": mediaPatch}},
				"required":   []string{"datacontenttype"}, "not": definition{"required": []string{"before"}},
			},
			"else": definition{"properties": definition{"datacontenttype": definition{"const": "application/json"}}},
		},
		definition{
			"if":   definition{"required": []string{"finalstateunknown"}},
			"then": ofType(func(op change.Op) bool { return op == change.Deleted }),
		},
	}
}

// data says what each operation carries. Only a delete whose last state is not known carries nothing.
func (b book) data() []any {
	isObject := func(op change.Op) bool { return op.OfObject() }
	content := definition{"if": isPatch(), "then": definition{"properties": definition{"data": definition{"$ref": "#/$defs/" + Patch}}}, "else": definition{"properties": definition{"data": anObject()}}}
	carries := func(d definition) definition {
		return definition{"required": []string{"data", "datacontenttype"}, "properties": definition{"data": d}}
	}
	rules := []any{
		definition{"if": ofType(isObject), "then": content},
		definition{"if": ofType(func(op change.Op) bool { return isObject(op) && op != change.Deleted }), "then": carries(definition{})},
		definition{"dependentRequired": definition{"data": []string{"datacontenttype"}, "datacontenttype": []string{"data"}}},
	}
	actor := carries(definition{"$ref": "#/$defs/" + Actor})
	actor["required"] = []string{"name", "uid", "data", "datacontenttype"}
	only := func(op change.Op) definition { return ofType(func(o change.Op) bool { return o == op }) }
	return append(rules,
		definition{"if": only(change.SnapshotBegin), "then": carries(b.begin())},
		definition{"if": only(change.SnapshotEnd), "then": carries(b.end())},
		definition{"if": only(change.Gap), "then": carries(b.gap())},
		definition{"if": only(change.Actor), "then": actor},
		definition{
			"if":   definition{"allOf": []any{only(change.Deleted), definition{"not": definition{"required": []string{"data"}}}}},
			"then": definition{"required": []string{"finalstateunknown"}},
		},
	)
}

func ofType(wanted func(change.Op) bool) definition {
	return definition{"properties": definition{"type": types(wanted)}, "required": []string{"type"}}
}
