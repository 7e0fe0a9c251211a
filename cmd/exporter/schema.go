package main

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

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/internal/source"
)

func newSchemaCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "schema",
		Short: "Show what type the objects of a resource are",
		Long: `schema makes schemas of what the API server publishes of its resources, custom ones too: as Avro, and as JSON Schema.
With a configuration, what its rules drop is not in them, and what they redact is a string.`,
		Example: `  exporter schema show deployments.apps
  exporter schema export schemas --resources "*"`,
	}, newSchemaShowCommand(), newSchemaDiffCommand(), newSchemaExportCommand())
}

// The kinds of schemas.
const (
	avro       = "avro"
	jsonSchema = "jsonschema"
)

// describer is what the flags of exporter schema say, and what was found of that: the server's schemas, and the streams
// of each resource by its name.
type describer struct {
	flags
	resources []string
	sink, as  string

	of         *config.Sink // whose rules count, too; nil is none
	cluster    *cluster.Cluster
	known      *destination.Schemas
	found      map[string][]selection.Selected
	registered bool // the schema is that of a sink's values, and not of objects
}

// register registers the flags that say whose schemas are meant.
func (d *describer) register(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVarP(&d.file, "config", "f", "", "configuration file (YAML) whose rules count (default: none)")
	d.registerAccess(set, "kubeconfig file")
	set.StringVar(&d.sink, "sink", "", "name of a configured sink, whose rules count, too")
}

func newSchemaShowCommand() *cobra.Command {
	d := new(describer)
	cmd := &cobra.Command{
		Use:   "show RESOURCE",
		Short: "Print the schema of one resource",
		Example: `  exporter schema show pods
  exporter schema show certificates.cert-manager.io --as jsonschema
  exporter schema show secrets -f config.yaml --sink lake`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := d.findOne(cmd, args)
			if err != nil {
				return err
			}
			text, err := d.schema(cmd.Context(), name)
			if err != nil {
				return err
			}
			_, err = stdout(cmd).Write(text)
			return err
		},
	}
	d.register(cmd)
	cmd.Flags().StringVar(&d.as, "as", avro, avro+" or "+jsonSchema+"; as avro, of a sink with a registry, what that has")
	return cmd
}

func newSchemaDiffCommand() *cobra.Command {
	d := &describer{as: avro}
	cmd := &cobra.Command{
		Use:   "diff RESOURCE",
		Short: "Compare what a sink's registry has with the API server",
		Long: `diff shows how the newest version that the sink's schema registry has of a resource differs from what the API server
describes now, and whether the registry would take a new version. Nothing is registered.

  +  a run adds this column
  -  the API server has this field no more: the column stays, and is null
  ~  the type is another one: the column stays, and other values are in kubecdc_rest

It fails where the registry would refuse the new version.`,
		Example: `  exporter schema diff widgets.example.com -f config.yaml --sink lake`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.file == "" || d.sink == "" {
				return usage.Errorf("schema diff needs --config and --sink: of which sink's registry?")
			}
			name, err := d.findOne(cmd, args)
			if err != nil {
				return err
			}
			return d.diff(cmd.Context(), name, stdout(cmd))
		},
	}
	d.register(cmd)
	return cmd
}

func newSchemaExportCommand() *cobra.Command {
	d := new(describer)
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the schemas of resources into files of a directory",
		Long: `export writes a file for each resource: RESOURCE.GROUP.json with a JSON Schema, or RESOURCE.GROUP.avsc with --as avro.
The directory is created if it is missing. Without --resources, all resources of the configuration are written, and
without one all that the API server serves, except Secrets.`,
		Example: `  exporter schema export schemas -f config.yaml
  exporter schema export schemas --resources pods,deployments.apps --as avro`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("want one DIR, have %d: see %s --help", len(args), cmd.CommandPath())
			}
			if err := d.find(cmd.Context()); err != nil {
				return err
			}
			return d.export(cmd.Context(), args[0], stdout(cmd))
		},
	}
	d.register(cmd)
	cmd.Flags().StringVar(&d.as, "as", jsonSchema, avro+" or "+jsonSchema)
	cmd.Flags().StringSliceVar(&d.resources, "resources", nil, "resources as kubectl names them (default: all)")
	return cmd
}

// findOne finds the one resource that a command is for, and returns its name.
func (d *describer) findOne(cmd *cobra.Command, args []string) (string, error) {
	if len(args) != 1 {
		return "", usage.Errorf("want one RESOURCE, have %d: see %s --help", len(args), cmd.CommandPath())
	}
	if err := config.CheckResource(args[0]); err != nil {
		return "", usage.Wrap(err)
	}
	d.resources = args
	if err := d.find(cmd.Context()); err != nil {
		return "", err
	}
	names := slices.Sorted(maps.Keys(d.found))
	if len(names) != 1 {
		return "", usage.Errorf("%s is %d resources: name one, or export them all", args[0], len(names))
	}
	return names[0], nil
}

// find asks the API server for the resources, by the rules of the configuration.
func (d *describer) find(ctx context.Context) error {
	cfg, err := d.configuration()
	if err != nil {
		return err
	}
	cluster.NewLogger(io.Discard, cfg.Log)
	if d.cluster, err = cluster.Find(ctx, d.access, cfg); err != nil {
		return err
	}
	client, err := source.NewClient(d.cluster.Rest, 0)
	if err != nil {
		return err
	}
	if err := client.AwaitReady(ctx); err != nil {
		return err
	}
	if _, err := d.cluster.Resolve(ctx, d.cluster.Rest, cfg.Resources); err != nil {
		return err
	}
	streams, err := d.cluster.Called(d.resources)
	if err != nil {
		return err
	}
	if d.sink != "" {
		d.of = &cfg.Sinks[0]
		to, err := destination.Of(d.of, d.cluster)
		if err != nil {
			return err
		}
		d.registered = to.Registry != nil && d.as == avro
	}
	d.known, d.found = destination.NewSchemas(client), map[string][]selection.Selected{}
	for _, s := range streams {
		name := s.Stream.Resource.String()
		d.found[name] = append(d.found[name], s)
	}
	return nil
}

// configuration is that of the command line, and the rules of the file.
func (d *describer) configuration() (*config.Config, error) {
	if !slices.Contains([]string{avro, jsonSchema}, d.as) {
		return nil, usage.Errorf("--as %q: want %s or %s", d.as, avro, jsonSchema)
	}
	if d.file == "" && d.sink != "" {
		return nil, usage.Errorf("--sink %q: give the --config that has it", withoutLogin(d.sink))
	}
	if d.file == "" {
		if d.config.Resources = d.resources; len(d.resources) == 0 {
			d.config.Resources = []string{"*"}
		}
		d.config.Sinks = []string{"-"} // nothing is written to it
	}
	return d.loadChosen(named(d.sink))
}

// export writes the schema of each resource into a file of the directory, and says which. What the server does not
// describe is in the error, and the others are written.
func (d *describer) export(ctx context.Context, dir string, out io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make directory %s: %w", dir, err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(d.found)) {
		text, err := d.schema(ctx, name)
		if err == nil {
			file := name + map[string]string{avro: ".avsc", jsonSchema: ".json"}[d.as]
			fmt.Fprintln(out, file)
			if filepath.Base(file) != file || !filepath.IsLocal(file) { // servers of others choose them
				err = fmt.Errorf("write schema %q: its name is no file's", file)
			} else if err = os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
				err = fmt.Errorf("write schema: %w", err)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// schema is that of the resource's objects after the rules, as text.
func (d *describer) schema(ctx context.Context, name string) ([]byte, error) {
	streams := d.found[name]
	resource := streams[0].Stream.Resource
	document := d.known.Of(ctx, resource)
	if document == nil {
		return nil, fmt.Errorf("the API server does not tell the schemas of %s (/openapi/v3): look for its error, or for a server "+
			"behind it that is down", strings.TrimPrefix(resource.Group+"/"+resource.Version, "/"))
	}
	of, err := destination.BehindRules(document, resource, streams, d.of)
	switch {
	case err != nil:
		return nil, err
	case of == nil:
		return nil, fmt.Errorf("the API server describes no %s of %s", resource.Kind, name)
	case d.registered:
		of = encode.ValueType(d.of.Format, &resource, of, d.of.HasColumns())
	}
	text := of.Avro()
	if d.as == jsonSchema {
		text = of.JSONSchema("objects of " + name)
	}
	var indented bytes.Buffer
	_ = json.Indent(&indented, text, "", "  ") // of JSON it cannot fail
	return append(indented.Bytes(), '\n'), nil
}

// diff writes how the schema of the resource that is registered for the sink differs from what the API server describes
// now. It changes nothing. The error has the registry's words where it would refuse a new version.
func (d *describer) diff(ctx context.Context, name string, out io.Writer) error {
	planned, err := destination.NewPlan(d.of, d.cluster)
	if err != nil {
		return err
	}
	if planned == nil {
		return usage.Errorf("sink %s has no kafka.registry: schema diff compares with what is registered", d.of.Name)
	}
	plan, err := planned(ctx, &d.found[name][0].Stream, "")
	if plan == nil {
		return err
	}
	text := fmt.Sprintf("subject %s, version %d\n", plan.Value.Subject, plan.Version)
	if plan.Version == 0 {
		text = fmt.Sprintf("subject %s has no version: a run registers the first one\n", plan.Value.Subject)
	}
	for _, one := range plan.Differences {
		text += differs(one) + "\n"
	}
	if plan.Version > 0 && !plan.Value.IsNew() {
		text += "a run registers nothing\n"
	} else if plan.Version > 0 && err == nil {
		text += "a run registers a new version, which is compatible\n"
	}
	_, told := io.WriteString(out, text)
	return cmp.Or(told, err)
}

// differs is one difference, as a line.
func differs(d typed.Difference) string {
	path := strings.TrimPrefix(d.Path, ".")
	switch {
	case d.Older == "":
		return fmt.Sprintf("+ %s: %s", path, d.Newer)
	case d.Newer == "":
		return fmt.Sprintf("- %s: %s (the column stays, and is null)", path, d.Older)
	}
	return fmt.Sprintf("~ %s: %s, now %s (the column stays; other values are in kubecdc_rest)", path, d.Older, d.Newer)
}
