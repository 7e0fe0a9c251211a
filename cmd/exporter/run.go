package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app"
	"github.com/kubecdc/kubecdc/internal/config"
)

func newRunCommand() *cobra.Command {
	f, acceptNewKeys := new(flags), false
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Stream changes until stopped",
		Long: `run streams the changes of the configured resources to the configured sinks until it is stopped by SIGINT or
SIGTERM. It continues where it stopped the last time, as the state directory says.

SIGHUP makes it give every sink a full snapshot of all that it takes; see also exporter snapshot.`,
		Example: `  exporter run -f config.yaml
  exporter run --resources pods,deployments.apps --sink nats://localhost:4222 --state-dir /var/lib/kubecdc
  exporter run --resources pods --sink kafka://kafka-0:9092,kafka-1:9092 --state-dir /var/lib/kubecdc
  exporter run --resources configmaps --sink - --state-dir ./state | jq .type`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.load(func(*config.Config) {})
			if err != nil {
				return err
			}
			hangups, ignore := notifyHangups()
			defer ignore()
			return app.Run(cmd.Context(), app.RunOptions{
				Access: f.access, Config: cfg, Out: stdout(cmd).Records(), ErrOut: stderr(cmd), Hangups: hangups, StopTimeout: stopTimeout,
				AcceptNewKeys: acceptNewKeys,
			})
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&acceptNewKeys, "accept-new-keys", false,
		"where the keys or topics of a compacted topic have changed, end the old keys with tombstones and send everything again")
	return cmd
}

// notifyHangups tells of each SIGHUP until the returned function is called. Where SIGHUP is ignored, as nohup has it,
// it stays ignored.
func notifyHangups() (hangups <-chan os.Signal, ignore func()) {
	if signal.Ignored(syscall.SIGHUP) {
		return nil, func() {}
	}
	notified := make(chan os.Signal, 1)
	signal.Notify(notified, syscall.SIGHUP)
	return notified, func() { signal.Stop(notified) }
}
