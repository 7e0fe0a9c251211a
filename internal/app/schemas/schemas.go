package schemas

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/app/objecttype"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/internal/source"
)

// The kinds of schemas.
const (
	Avro = "avro"
	JSON = "jsonschema"
)

// Options are whose schemas are made, and how.
type Options struct {
	Access    cluster.Access
	Config    *config.Config
	Resources []string     // as --resources names them; none is all
	Sink      *config.Sink // whose rules count, too; nil is none
	As        string       // Avro or JSON
}

// Show writes the schema of the one resource, as the API server describes it now and the rules leave it.
func Show(ctx context.Context, o Options, out io.Writer) error {
	w, name, err := o.one(ctx)
	if err != nil {
		return err
	}
	text, err := w.schema(ctx, name)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// one is a writer for the one resource that is asked for, and that.
func (o Options) one(ctx context.Context) (*schemaWriter, string, error) {
	w, err := o.writer(ctx)
	if err != nil {
		return nil, "", err
	}
	names := slices.Sorted(maps.Keys(w.resources))
	if len(names) != 1 {
		return nil, "", usage.Errorf("%s is %d resources: name one, or export them all", strings.Join(w.Options.Resources, ","), len(names))
	}
	return w, names[0], nil
}

// Export writes the schema of each resource into a file of the directory, and returns their names. What the
// server does not describe is in the error, and the others are written.
func Export(ctx context.Context, o Options, dir string) (files []string, err error) {
	w, err := o.writer(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory %s: %w", dir, err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(w.resources)) {
		text, err := w.schema(ctx, name)
		if err == nil {
			file := name + map[string]string{Avro: ".avsc", JSON: ".json"}[o.As]
			files = append(files, file)
			if filepath.Base(file) != file || !filepath.IsLocal(file) { // servers of others choose them
				err = fmt.Errorf("write schema %q: its name is no file's", file)
			} else if err = os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
				err = fmt.Errorf("write schema: %w", err)
			}
		}
		errs = append(errs, err)
	}
	return files, errors.Join(errs...)
}

// schemaWriter knows the server's schemas, and the streams of each resource by its name.
type schemaWriter struct {
	Options
	cluster    *cluster.Cluster
	known      *objecttype.Schemas
	resources  map[string][]selection.Selected
	registered bool // the schema is that of a sink's values, and not of objects
}

func (o Options) writer(ctx context.Context) (*schemaWriter, error) {
	cluster.NewLogger(io.Discard, o.Config.Log)
	c, err := cluster.Find(ctx, o.Access, o.Config)
	if err != nil {
		return nil, err
	}
	if err := source.AwaitReady(ctx, c.Rest); err != nil {
		return nil, err
	}
	if _, err := c.Resolve(ctx, c.Rest, o.Config.Resources); err != nil {
		return nil, err
	}
	access, err := source.NewAccess(c.Rest)
	if err != nil {
		return nil, err
	}
	streams, err := c.Called(o.Resources)
	if err != nil {
		return nil, err
	}
	w := &schemaWriter{Options: o, cluster: c, known: objecttype.NewSchemas(access), resources: map[string][]selection.Selected{}}
	if o.Sink != nil {
		d, err := destination.Of(o.Sink, c)
		if err != nil {
			return nil, err
		}
		w.registered = d.Registry != nil && w.As == Avro
	}
	for _, s := range streams {
		name := s.Stream.Resource.String()
		w.resources[name] = append(w.resources[name], s)
	}
	return w, nil
}

// schema is that of the resource's objects after the rules, as text.
func (w *schemaWriter) schema(ctx context.Context, name string) ([]byte, error) {
	streams := w.resources[name]
	resource := streams[0].Stream.Resource
	document := w.known.Of(ctx, resource)
	if document == nil {
		return nil, fmt.Errorf("the API server does not tell the schemas of %s (/openapi/v3): look for its error, or for a server "+
			"behind it that is down", strings.TrimPrefix(resource.Group+"/"+resource.Version, "/"))
	}
	of, err := objecttype.BehindRules(document, resource, streams, w.Sink)
	switch {
	case err != nil:
		return nil, err
	case of == nil:
		return nil, fmt.Errorf("the API server describes no %s of %s", resource.Kind, name)
	case w.registered:
		of = encode.ValueType(w.Sink.Format, &resource, of, w.Sink.HasColumns())
	}
	text := of.Avro()
	if w.As == JSON {
		text = of.JSONSchema("objects of " + name)
	}
	var indented bytes.Buffer
	_ = json.Indent(&indented, text, "", "  ") // of JSON it cannot fail
	return append(indented.Bytes(), '\n'), nil
}

// Diff writes how the schema of the one resource that is registered for the sink differs from what the API server
// describes now. It changes nothing. The error has the registry's words where it would refuse a new version.
func Diff(ctx context.Context, o Options, out io.Writer) error {
	w, name, err := o.one(ctx)
	if err != nil {
		return err
	}
	planned, err := destination.NewPlan(o.Sink, w.cluster)
	if err != nil {
		return err
	}
	if planned == nil {
		return usage.Errorf("sink %s has no kafka.registry: schema diff compares with what is registered", o.Sink.Name)
	}
	plan, err := planned(ctx, &w.resources[name][0].Stream, "")
	if plan == nil {
		return err
	}
	text := fmt.Sprintf("subject %s, version %d\n", plan.Value.Subject, plan.Version)
	if plan.Version == 0 {
		text = fmt.Sprintf("subject %s has no version: a run registers the first one\n", plan.Value.Subject)
	}
	for _, d := range plan.Differences {
		text += line(d) + "\n"
	}
	if plan.Version > 0 && !plan.Value.IsNew() {
		text += "a run registers nothing\n"
	} else if plan.Version > 0 && err == nil {
		text += "a run registers a new version, which is compatible\n"
	}
	_, told := io.WriteString(out, text)
	return cmp.Or(told, err)
}

// line is one difference.
func line(d typed.Difference) string {
	path := strings.TrimPrefix(d.Path, ".")
	switch {
	case d.Older == "":
		return fmt.Sprintf("+ %s: %s", path, d.Newer)
	case d.Newer == "":
		return fmt.Sprintf("- %s: %s (the column stays, and is null)", path, d.Older)
	}
	return fmt.Sprintf("~ %s: %s, now %s (the column stays; other values are in kubecdc_rest)", path, d.Older, d.Newer)
}
