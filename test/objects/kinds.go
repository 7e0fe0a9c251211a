// Package objects makes objects for tests of what reads JSON as bytes: every built-in kind as an API server writes it,
// and what nobody should write.
package objects

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Kinds returns an object of each built-in kind, with something in its fields, always in the same order.
func Kinds() ([][]byte, error) {
	var kinds []schema.GroupVersionKind
	for kind := range scheme.Scheme.AllKnownTypes() {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	var all [][]byte
	for _, kind := range kinds {
		text, err := object(kind)
		if err != nil {
			return nil, fmt.Errorf("make a %s: %w", kind, err)
		}
		if text != nil {
			all = append(all, text)
		}
	}
	return all, nil
}

// object is nil of a kind of lists or options.
func object(kind schema.GroupVersionKind) (text []byte, err error) {
	for depth := 5; depth > 0; depth-- { // not every value that fill makes has a JSON form
		o, err := scheme.Scheme.New(kind)
		if err != nil {
			return nil, err
		}
		Fill(reflect.ValueOf(o).Elem(), depth)
		named, ok := o.(metav1.Object)
		if !ok {
			return nil, nil
		}
		named.SetName(strings.ToLower(kind.Kind))
		named.SetNamespace("ns-1")
		named.SetLabels(map[string]string{"app": "web", "name": "x"})
		named.SetAnnotations(map[string]string{"a": "<b>&\u2028\"\\\"", "z": "😀\x01\b"})
		o.GetObjectKind().SetGroupVersionKind(kind)
		if text, err = json.Marshal(o); err == nil {
			return text, nil
		}
	}
	return nil, err
}

// Fill gives values to the fields of v that are plain enough, down to the depth.
func Fill(v reflect.Value, depth int) {
	if !v.CanSet() || depth == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(`va"lue\}`)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		Fill(v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		Fill(v.Index(0), depth-1)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() || v.Type() == reflect.TypeFor[runtime.RawExtension]() {
			return
		}
		for i := range v.NumField() {
			Fill(v.Field(i), depth-1)
		}
	}
}
