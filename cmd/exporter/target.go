package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// tokenVariable is the environment's variable with the token of an exporter at --server, which is the third word of the
// file address in its state directory. A flag would show it to everybody on the host.
const tokenVariable = "KUBECDC_TOKEN"

// defaultStateDir is the configuration's default.
const defaultStateDir = "/var/lib/kubecdc"

// target says which exporter a command is for.
type target struct {
	stateDir string
	server   string
}

func (t *target) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.stateDir, "state-dir", defaultStateDir, "state directory of the exporter, which says where it listens")
	cmd.Flags().StringVar(&t.server, "server", "", "address of the exporter, instead of --state-dir: http://127.0.0.1:8080; needs "+tokenVariable)
}

// check refuses a command line that names two exporters.
func (t *target) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("server") && cmd.Flags().Changed("state-dir") {
		return usage.Errorf("--server and --state-dir: give one of them")
	}
	return nil
}

// client finds the running exporter. It returns a *control.NotRunningError where the state is nobody's.
func (t *target) client() (*control.Client, error) {
	if t.server == "" {
		return control.Locate(t.stateDir)
	}
	client, err := control.NewClient(t.server, os.Getenv(tokenVariable))
	if err != nil {
		return nil, usage.Errorf("--server %q: %w", withoutLogin(t.server), err)
	}
	return client, nil
}
