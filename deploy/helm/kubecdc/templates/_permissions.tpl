{{- /*
What the configured resources need, as JSON: {"": {GROUP: {PLURAL: true}}, NAMESPACE: {...}}, where "" stands for all
namespaces. A name is read as the exporter reads it: pods, po, deployments.apps, deployments.v1.apps, *.apps, *.
*/ -}}
{{- define "kubecdc.permissions" -}}
{{- $known := .Files.Get "files/resources.yaml" | fromYaml -}}
{{- $scopes := dict -}}
{{- range $i, $entry := .Values.config.resources -}}
  {{- $name := $entry -}}
  {{- $namespaces := list -}}
  {{- if kindIs "map" $entry -}}
    {{- $name = $entry.resource -}}
    {{- $namespaces = default (list) $entry.namespaces -}}
  {{- end -}}
  {{- $found := include "kubecdc.resource" (dict "name" (lower $name) "at" (printf "config.resources[%d]" $i) "known" $known "wildcard" $.Values.rbac.wildcard) | fromJson -}}
  {{- range $namespace := (default (list "") $namespaces) -}}
    {{- $scope := default (dict) (get $scopes $namespace) -}}
    {{- $plurals := default (dict) (get $scope $found.group) -}}
    {{- $_ := set $plurals $found.plural true -}}
    {{- $_ = set $scope $found.group $plurals -}}
    {{- $_ = set $scopes $namespace $scope -}}
  {{- end -}}
{{- end -}}
{{- toJson $scopes -}}
{{- end -}}

{{- /* The group and the plural of one name, as JSON. A name of Kubernetes' own may be a singular or a short one. */ -}}
{{- define "kubecdc.resource" -}}
{{- $parts := splitList "." .name -}}
{{- $plural := first $parts -}}
{{- $group := rest $parts -}}
{{- if and $group (regexMatch "^v[0-9]+((alpha|beta)[0-9]+)?$" (first $group)) -}}
  {{- $group = rest $group -}}
{{- end -}}
{{- $group = join "." $group -}}
{{- $isKnown := false -}}
{{- range $known, $r := .known -}}
  {{- if and (or (eq $known $plural) (has $plural $r.names)) (or (eq $group "") (eq $group $r.group)) -}}
    {{- $plural = $known -}}
    {{- $group = $r.group -}}
    {{- $isKnown = true -}}
    {{- break -}}
  {{- end -}}
{{- end -}}
{{- if eq .name "*" -}}
  {{- if not .wildcard -}}
    {{- fail (printf "%s: \"*\" needs a role that may list and watch everything, Secrets among it: set rbac.wildcard to true, or name the resources" .at) -}}
  {{- end -}}
  {{- $group = "*" -}}
{{- else if and (not $isKnown) (eq $group "") -}}
  {{- fail (printf "%s: %q is none of Kubernetes' own resources: write it with its group, as in certificates.cert-manager.io" .at .name) -}}
{{- end -}}
{{- dict "group" $group "plural" $plural | toJson -}}
{{- end -}}

{{- /* The rules for one scope: what the exporter does is list and watch. */ -}}
{{- define "kubecdc.rules" -}}
{{- range $group, $plurals := . }}
- apiGroups: [{{ $group | quote }}]
  resources: {{ keys $plurals | sortAlpha | toJson }}
  verbs: [list, watch]
{{- end -}}
{{- end -}}
