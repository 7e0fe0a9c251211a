// Package serde gives tests the deserialiser that users of Apicurio Registry have in Java, with a small program around
// it.
package serde

import (
	"embed"

	"github.com/kubecdc/kubecdc/test/maven"
)

//go:embed java
var javaFiles embed.FS

// Project is the program Deserialise. Its arguments are the brokers, the address of the registry's own API, and topics.
func Project() *maven.Project {
	return &maven.Project{Name: "serde", Title: "Apicurio's deserialiser", Sources: javaFiles, MinJava: 17}
}
