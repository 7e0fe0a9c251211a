// Command collector is an OpenTelemetry Collector of three parts: the receiver of Kubernetes' objects, the exporter to
// Kafka, and the storage of its queue in files.
//
// The receiver is 0.146.0, all else 0.149.0. This receiver forgets its place at a restart and lists again; that of
// 0.156.0 can keep its resourceVersion with the setting storage. Say so beside every figure of a restart.
package main

import (
	"log"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/kafkaexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/k8sobjectsreceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func main() {
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Description: "objects to Kafka", Version: "0.149.0"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()}, DefaultScheme: "file",
		}},
	})
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}

func factories() (all otelcol.Factories, err error) {
	if all.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](k8sobjectsreceiver.NewFactory()); err != nil {
		return all, err
	}
	if all.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](kafkaexporter.NewFactory()); err != nil {
		return all, err
	}
	all.Telemetry = otelconftelemetry.NewFactory()
	all.Extensions, err = otelcol.MakeFactoryMap[extension.Factory](filestorage.NewFactory())
	return all, err
}
