package schema

import (
	"github.com/kubecdc/kubecdc/internal/audit"
	"github.com/kubecdc/kubecdc/internal/change"
)

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

// told is what an actor says: who sent a request that was answered with a state of the object.
func (b book) told() definition {
	user := func(what string) definition {
		return described(b.fields("a user", definition{
			"username": name(), "uid": name(), "groups": listOf(name()),
		}, "username", "uid", "groups"), what)
	}
	return b.fields("who sent a request that was answered with a state of the object", definition{
		"certainty":    described(definition{"enum": []audit.Certainty{audit.Proven, audit.Likely, audit.Possible}}, "that the request made the state"),
		"op":           described(definition{"enum": []string{change.Added.String(), change.Updated.String(), change.Deleted.String()}}, "what the request did; a deletecollection deletes also what finalizers keep for now"),
		"verb":         described(name(), "of the request: create, update, patch, delete or deletecollection"),
		"subresource":  name(),
		"auditID":      described(name(), "of the request; its sender may choose it"),
		"user":         user("who is authenticated"),
		"impersonated": user("as whom the user acts, if it is another one"),
		"userAgent":    name(),
		"sourceIPs":    described(listOf(name()), "as the API server has them: the last one is of the connection, and what comes before it the client may have made up (X-Forwarded-For)"),
		"decision":     described(name(), "of the authorization"),
		"reason":       described(name(), "of the decision"),
		"code":         described(count(), "of the answer"),
		"requested":    timestamp(),
		"completed":    timestamp(),
		"cut":          described(listOf(name()), "fields that were left out, since they are too large"),
	}, "subresource", "impersonated", "auditID", "userAgent", "sourceIPs", "decision", "reason", "cut")
}

// begin is what a snapshot is about to do.
func (b book) begin() definition {
	return b.fields("a list is about to be compared with the inventory", definition{
		"resourceVersion": described(version(), "of the list"),
		"reason":          reasons(func(change.Reason) bool { return true }),
		"limits":          b.limits(),
	}, "limits")
}

// end is what a snapshot did.
func (b book) end() definition {
	return b.fields("a list was compared with the inventory", definition{
		"resourceVersion": described(version(), "of the list"),
		"reason":          reasons(func(change.Reason) bool { return true }),
		"replaced":        described(count(), "objects that were new or changed"),
		"deleted":         described(count(), "objects that were gone"),
		"synced":          described(count(), "objects that were unchanged and sent again"),
		"limits":          b.limits(),
	}, "limits")
}

// limits say which objects a snapshot is of.
func (b book) limits() definition {
	return b.fields("a requested snapshot is of these objects only; missing if it is of all", definition{
		"namespace": name(),
		"name":      name(),
		"selector":  described(name(), "of labels"),
	}, "namespace", "name", "selector")
}

// gap is what a gap says: states of objects between two versions may be missing, or one object was refused by the sink.
func (b book) gap() definition {
	return b.fields("changes between two versions may be missing", definition{
		"reason":          reasons(func(r change.Reason) bool { return r.Gap() || r == change.Policy }),
		"lastDelivered":   described(definition{"type": "string"}, "the version that was delivered last; empty if nothing was delivered"),
		"resourceVersion": described(version(), "the version from which on everything is delivered again"),
		"since":           described(timestamp(), "when the stream was last known to be whole"),
		"rejected":        described(name(), "why the record is not in the sink: too_large, invalid, filter, unreadable or redaction"),
		"deadLetter":      described(name(), "the id of the dead letter that keeps the record"),
	}, "since", "rejected", "deadLetter")
}
