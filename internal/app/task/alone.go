package task

import (
	"context"
	"log/slog"
	"time"

	"github.com/kubecdc/kubecdc/internal/listener"
)

const readTooEarly = "a sink's log was read too early; everything begins anew where it is saved"

// Alone leads without asking anybody, again and again. Where a sink's log was read too early, since an earlier
// exporter's last words came after that, the line stops and begins anew: as after a crash, but the process stays.
func Alone(ctx context.Context, logger *slog.Logger, lead func(context.Context, *Term) error) error {
	for wait := listener.RetryForever(); ; {
		err := lead(ctx, nil)
		if !listener.IsLate(err) || ctx.Err() != nil {
			return err
		}
		logger.Warn(readTooEarly, "error", err)
		select {
		case <-time.After(wait.NextBackOff()):
		case <-ctx.Done():
			return nil
		}
	}
}

// IgnoreStop is nil where the error is only our own stop.
func IgnoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
