// Package schema makes the JSON schema of the exporter's configuration from the types that read it, so that the chart
// refuses what the exporter would refuse, and never what it takes.
package schema

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Schema is a JSON schema.
type Schema = map[string]any

// source is what the schema is made from: the declarations of a package.
type source struct {
	types  map[string]ast.Expr
	lists  map[string][]string // the values of functions such as Formats
	consts map[string]string
}

// Config returns the schema of type Config of the package in dir.
func Config(dir string) (Schema, error) {
	src, err := parse(dir)
	if err != nil {
		return nil, err
	}
	return src.named("Config", "")
}

func parse(dir string) (*source, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	src := &source{types: map[string]ast.Expr{}, lists: map[string][]string{}, consts: map[string]string{}}
	var functions []*ast.FuncDecl
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse the configuration's types: %w", err)
		}
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.GenDecl:
				src.declare(d)
			case *ast.FuncDecl:
				functions = append(functions, d)
			}
		}
	}
	for _, f := range functions { // when all constants are known
		src.list(f)
	}
	return src, nil
}

func (s *source) declare(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.types[spec.Name.Name] = spec.Type
		case *ast.ValueSpec:
			for i, value := range spec.Values {
				if text, ok := s.text(value); ok && i < len(spec.Names) {
					s.consts[spec.Names[i].Name] = text
				}
			}
		}
	}
}

// text is the value of a string literal or of a constant.
func (s *source) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, ok := s.consts[e.Name]
		return text, ok
	}
	return "", false
}

// list notes a function without parameters that returns strings.
func (s *source) list(f *ast.FuncDecl) {
	if f.Recv != nil || f.Type.Params.NumFields() > 0 || f.Body == nil || len(f.Body.List) != 1 {
		return
	}
	result, ok := f.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(result.Results) != 1 {
		return
	}
	literal, ok := result.Results[0].(*ast.CompositeLit)
	if !ok {
		return
	}
	var values []string
	for _, element := range literal.Elts {
		text, ok := s.text(element)
		if !ok {
			return
		}
		values = append(values, text)
	}
	s.lists[f.Name.Name] = values
}

// named is the schema of a type of the package, or of Go.
func (s *source) named(name, comment string) (Schema, error) {
	switch name {
	case "string", "Secret":
		return s.restricted(comment), nil
	case "int", "Size": // a quoted number may come from a variable
		return Schema{"type": []string{"integer", "string"}}, nil
	case "Duration":
		return Schema{"type": []string{"string", "integer"}}, nil
	case "bool":
		return Schema{"type": []string{"boolean", "string"}}, nil
	case "Redaction":
		return Schema{"anyOf": []Schema{{"const": "none"}, {"type": "array", "items": Schema{"type": "string"}}}}, nil
	}
	structure, ok := s.types[name].(*ast.StructType)
	if !ok {
		return nil, fmt.Errorf("make the schema of type %s: it is of a kind that this generator does not know: teach it", name)
	}
	object, err := s.object(structure)
	if name == "Resource" { // or its name alone
		object = Schema{"anyOf": []Schema{{"type": "string", "minLength": 1}, object}}
	}
	return object, err
}

// restricted is a string, of the values that the comment names as "one of Formats". A variable may stand for any.
func (s *source) restricted(comment string) Schema {
	found := regexp.MustCompile(`(?:^|one )of (\w+)`).FindStringSubmatch(comment)
	if found == nil || s.lists[found[1]] == nil {
		return Schema{"type": "string"}
	}
	return Schema{"type": "string", "pattern": "^(" + strings.Join(s.lists[found[1]], "|") + `|.*\$\{.*)$`}
}

func (s *source) object(structure *ast.StructType) (Schema, error) {
	properties := Schema{}
	for _, field := range structure.Fields.List {
		key, ok := keyOf(field)
		if !ok {
			continue
		}
		comment := strings.TrimSpace(field.Comment.Text())
		property, err := s.typed(field.Type, comment)
		if err != nil {
			return nil, err
		}
		property["description"] = describe(key, comment)
		properties[key] = property
	}
	return Schema{"type": "object", "additionalProperties": false, "properties": properties}, nil
}

func (s *source) typed(e ast.Expr, comment string) (Schema, error) {
	switch e := e.(type) {
	case *ast.Ident:
		return s.named(e.Name, comment)
	case *ast.StarExpr:
		property, err := s.typed(e.X, comment)
		if err == nil && property["type"] == "object" { // the key alone says something
			property["type"] = []string{"object", "null"}
		}
		return property, err
	case *ast.ArrayType:
		items, err := s.typed(e.Elt, comment)
		return Schema{"type": "array", "items": items}, err
	case *ast.MapType:
		return Schema{"type": "object", "additionalProperties": Schema{"type": []string{"string", "number", "boolean"}}}, nil
	}
	return nil, fmt.Errorf("make the schema of %T: this generator does not know it: teach it", e)
}

// keyOf is the field's key in a file; what has none is no part of one.
func keyOf(field *ast.Field) (string, bool) {
	if field.Tag == nil || len(field.Names) != 1 {
		return "", false
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return "", false
	}
	key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return key, key != "" && key != "-"
}

// describe is the comment behind the field, or where else to look.
func describe(key, comment string) string {
	if comment == "" {
		comment = "see deploy/config.example.yaml"
	}
	return "The exporter's " + key + ": " + comment + "."
}
