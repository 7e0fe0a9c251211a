//go:build tools

package deploy

import (
	_ "github.com/compose-spec/compose-go/v2/loader"
	_ "github.com/moby/buildkit/frontend/dockerfile/parser"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	_ "github.com/prometheus/prometheus/promql"
	_ "github.com/prometheus/prometheus/rules"
	_ "github.com/prometheus/prometheus/util/teststorage"
)
