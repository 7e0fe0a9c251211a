package main

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// A filter for what nothing is called takes nothing, without a word. So what cannot be a name is refused.

// checkResourceFilter wants resources as records name them.
func checkResourceFilter(names []string) error {
	for _, name := range names {
		_, group, _ := strings.Cut(name, ".")
		if strings.Contains(name, "*") || versioned(group) || config.CheckResource(name) != nil {
			return usage.Errorf("--resources %q: want a resource without a namespace, a version and *: pods or deployments.apps", withoutLogin(name))
		}
	}
	return nil
}

func opNames() []string {
	var names []string
	for op := change.Added; op <= change.Actor; op++ {
		if op != change.Bookmark {
			names = append(names, op.String())
		}
	}
	return names
}

// versioned says whether a group begins with a version, as kubectl takes it: v1.apps.
func versioned(group string) bool {
	version, rest, found := strings.Cut(group, ".")
	return found && rest != "" && len(version) > 1 && version[0] == 'v' && strings.Trim(version[1:2], "0123456789") == ""
}

// checkNamespaceFilter takes "" for all.
func checkNamespaceFilter(namespace string) error {
	if namespace == "" {
		return nil
	}
	if err := config.CheckNamespace(namespace); err != nil {
		return usage.Errorf("--namespace: %w", err)
	}
	return nil
}

// checkNamePattern takes "" for all.
func checkNamePattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil || strings.Contains(pattern, "/") {
		return usage.Errorf("--name %q: want an object's name, in which * stands for any text", pattern)
	}
	return nil
}

// checkOutput wants one of two.
func checkOutput(output, usual string) error {
	if output != usual && output != "json" {
		return usage.Errorf("--output %q: want %s or json", output, usual)
	}
	return nil
}

func checkTimeout(timeout time.Duration) error {
	if timeout < 0 {
		return usage.Errorf("--timeout %s: want 0 or more", timeout)
	}
	return nil
}

func checkOps(ops []string) error {
	for _, op := range ops {
		if !slices.Contains(opNames(), op) {
			return usage.Errorf("--op %q: want %s", op, strings.Join(opNames(), ", "))
		}
	}
	return nil
}
