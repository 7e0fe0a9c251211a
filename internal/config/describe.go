package config

import (
	"strconv"

	"go.yaml.in/yaml/v3"
)

// isString says whether the scalar is one. What YAML 1.1 took for a boolean is none: a reader may still mean that.
func isString(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return false
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0 {
		return true
	}
	switch n.Value {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false
	}
	return true
}

// describeNode shows the node as it was written, before any variable in it was replaced, so that no secret comes out.
func describeNode(n *yaml.Node) string {
	switch {
	case n == nil:
		return "nothing"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isString(n):
		return strconv.Quote(shorten(n.Value))
	}
	return shorten(n.Value)
}

func shorten(text string) string {
	const enough = 60
	runes := []rune(text)
	if len(runes) <= enough {
		return text
	}
	return string(runes[:enough]) + "..."
}
