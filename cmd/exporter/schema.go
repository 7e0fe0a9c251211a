package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app/schemas"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
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

// describer is what the flags of exporter schema say.
type describer struct {
	flags
	resources []string
	sink, as  string
}

func (d *describer) register(cmd *cobra.Command, usual string) {
	d.registerSource(cmd)
	cmd.Flags().StringVar(&d.as, "as", usual, schemas.Avro+" or "+schemas.JSON)
}

// registerSource registers the flags that say whose schemas are meant.
func (d *describer) registerSource(cmd *cobra.Command) {
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
			o, err := d.ofOne(cmd, args)
			if err != nil {
				return err
			}
			return schemas.Show(cmd.Context(), o, stdout(cmd))
		},
	}
	d.register(cmd, schemas.Avro)
	cmd.Flags().Lookup("as").Usage += "; as avro, of a sink with a registry, what that has"
	return cmd
}

func newSchemaDiffCommand() *cobra.Command {
	d := new(describer)
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
			o, err := d.ofOne(cmd, args)
			if err != nil {
				return err
			}
			return schemas.Diff(cmd.Context(), o, stdout(cmd))
		},
	}
	d.registerSource(cmd)
	d.as = schemas.Avro
	return cmd
}

// ofOne are the options of a command for one resource.
func (d *describer) ofOne(cmd *cobra.Command, args []string) (o schemas.Options, err error) {
	if len(args) != 1 {
		return o, usage.Errorf("want one RESOURCE, have %d: see %s --help", len(args), cmd.CommandPath())
	}
	if err := config.CheckResource(args[0]); err != nil {
		return o, usage.Wrap(err)
	}
	d.resources = args
	return d.options()
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
			o, err := d.options()
			if err != nil {
				return err
			}
			files, err := schemas.Export(cmd.Context(), o, args[0])
			for _, file := range files {
				fmt.Fprintln(stdout(cmd), file)
			}
			return err
		},
	}
	d.register(cmd, schemas.JSON)
	cmd.Flags().StringSliceVar(&d.resources, "resources", nil, "resources as kubectl names them (default: all)")
	return cmd
}

// options are those of the command line, and the rules of the configuration.
func (d *describer) options() (o schemas.Options, err error) {
	if !slices.Contains([]string{schemas.Avro, schemas.JSON}, d.as) {
		return o, usage.Errorf("--as %q: want %s or %s", d.as, schemas.Avro, schemas.JSON)
	}
	if d.file == "" && d.sink != "" {
		return o, usage.Errorf("--sink %q: give the --config that has it", withoutLogin(d.sink))
	}
	if d.file == "" {
		if d.config.Resources = d.resources; len(d.resources) == 0 {
			d.config.Resources = []string{"*"}
		}
		d.config.Sinks = []string{"-"} // nothing is written to it
	}
	cfg, err := d.loadChosen(named(d.sink))
	if err != nil {
		return o, err
	}
	o = schemas.Options{Access: d.access, Config: cfg, Resources: d.resources, As: d.as}
	if d.sink != "" {
		o.Sink = &cfg.Sinks[0]
	}
	return o, nil
}
