package replay

import (
	"bytes"
	"fmt"
	"strings"
)

// The places of a template, and what stands there: all of one width for every object, so that all objects are of one
// length.
const (
	namespacePlace = "__NAMESPACE__"
	namePlace      = "__NAME__"
	uidPlace       = "__UID__"
	versionPlace   = "__RV__"

	nameHead = "web-7d4b9c6f5-"
	uidHead  = "3f1c2b7a-0d4e-4a52-9c11-"
)

// namespaces is how many namespaces the objects of a list are in.
const namespaces = 100

// template is an object on one line whose identity is still to be filled in.
type template struct {
	text   string
	places []place
	total  int // objects, which are spread over the namespaces
}

// place is one placeholder and what comes before it.
type place struct{ before, what string }

func newTemplate(text string, total int) *template {
	t := &template{total: max(total, 1)}
	rest := strings.TrimSpace(text)
	for {
		at, what := nextPlace(rest)
		if what == "" {
			t.text = rest
			return t
		}
		t.places = append(t.places, place{rest[:at], what})
		rest = rest[at+len(what):]
	}
}

func nextPlace(text string) (at int, what string) {
	at = len(text)
	for _, one := range []string{namespacePlace, namePlace, uidPlace, versionPlace} {
		if i := strings.Index(text, one); i >= 0 && i < at {
			at, what = i, one
		}
	}
	return at, what
}

// append appends the i-th object, in the order of the API server's lists, at the version.
func (t *template) append(dst []byte, i, version int) []byte {
	for _, p := range t.places {
		dst = append(dst, p.before...)
		switch p.what {
		case namespacePlace:
			dst = appendNumber(append(dst, "team-"...), i*namespaces/t.total, 3)
		case namePlace:
			dst = appendNumber(append(dst, nameHead...), i, 7)
		case uidPlace:
			dst = appendNumber(append(dst, uidHead...), i, 12)
		case versionPlace:
			dst = appendNumber(dst, version, versionDigits)
		}
	}
	return append(dst, t.text...)
}

// versionDigits is how many oldestVersion has, and all that follow.
const versionDigits = 10

// appendNumber appends n with leading zeros.
func appendNumber(dst []byte, n, width int) []byte {
	dst = append(dst, "0000000000000000"[:width]...)
	for i := len(dst) - 1; n > 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
	return dst
}

// resource is what the world has of one kind.
type resource struct {
	group, version, name, kind string
	// item is an object of a list, object one of a watch: the items of built-in types have no kind.
	item, object *template
}

// group is the custom resources'.
const group = "bench.kubecdc.dev"

// Custom stands for all custom resources of a world, as the exporter's configuration names them.
const Custom = "*." + group

// newPods takes the fixture, or makes Pods of the world's size.
func (w World) newPods(fixture string) *resource {
	const head = `{"kind":"Pod","apiVersion":"v1",`
	item := "{" + strings.TrimPrefix(strings.TrimSpace(fixture), head)
	if w.ObjectBytes > 0 {
		item = sized(w.ObjectBytes)
	}
	return &resource{
		version: "v1", name: "pods", kind: "Pod",
		item: newTemplate(item, w.Objects), object: newTemplate(head+item[1:], w.Objects),
	}
}

// newCustom makes the i-th custom resource.
func (w World) newCustom(i int) *resource {
	r := &resource{group: group, version: "v1", name: fmt.Sprintf("widgets%03d", i), kind: fmt.Sprintf("Widget%03d", i)}
	text := fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"%s",%s`, group, r.kind, sized(max(w.ObjectBytes, 1))[1:])
	r.item = newTemplate(text, w.Objects)
	r.object = r.item
	return r
}

// sized is an object of about so many bytes, without kind. Like real ones it is a third managedFields while it is
// small.
func sized(size int) string {
	const head = `{"metadata":{"name":"__NAME__","namespace":"__NAMESPACE__","uid":"__UID__","resourceVersion":"__RV__",` +
		`"generation":1,"creationTimestamp":"2026-11-20T23:59:45Z","labels":{"app":"web","pod-template-hash":"7d4b9c6f5","team":"payments"},` +
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7d4b9c6f5","uid":"1b7f1c1e-5a3e-4b8e-9d1a-0c2d3e4f5a6b","controller":true}],` +
		`"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-11-20T23:59:45Z","fieldsType":"FieldsV1",` +
		`"fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{},"f:team":{}}},` +
		`"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:env":{},"f:image":{},"f:name":{}}},"f:nodeName":{}}}}]},` +
		`"spec":{"nodeName":"node-017","containers":[{"name":"web","image":"registry.example.com/payments/web:1.2.3","env":[`
	const tail = `]}]},"status":{"phase":"Running","hostIP":"10.0.0.17","podIP":"10.1.2.3"}}`
	var b bytes.Buffer
	b.WriteString(head)
	for i := 0; i == 0 || b.Len()+len(tail) < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"SETTING_%05d","value":"db-%d.payments.svc.cluster.local:5432"}`, i, i%7)
	}
	b.WriteString(tail)
	return b.String()
}
