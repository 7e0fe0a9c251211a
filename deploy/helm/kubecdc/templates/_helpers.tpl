{{- define "kubecdc.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* The names of a StatefulSet's pods and of their revisions end with up to eleven more characters. */ -}}
{{- define "kubecdc.fullname" -}}
{{- $name := include "kubecdc.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- $name = .Values.fullnameOverride -}}
{{- else if not (contains $name .Release.Name) -}}
{{- $name = printf "%s-%s" .Release.Name $name -}}
{{- else -}}
{{- $name = .Release.Name -}}
{{- end -}}
{{- $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "kubecdc.selector" -}}
app.kubernetes.io/name: {{ include "kubecdc.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kubecdc.labels" -}}
{{ include "kubecdc.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "kubecdc.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "kubecdc.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "kubecdc.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- /* The port of config.listen, which the schema has checked. */ -}}
{{- define "kubecdc.port" -}}
{{- .Values.config.listen | splitList ":" | last -}}
{{- end -}}

{{- /* The port of config.audit.listen; "" is none. */ -}}
{{- define "kubecdc.auditPort" -}}
{{- dig "listen" "" (default dict .Values.config.audit) | splitList ":" | last -}}
{{- end -}}

{{- /* Where the Secret of the audit webhook is mounted. */ -}}
{{- define "kubecdc.auditDir" -}}/etc/kubecdc/audit{{- end -}}

{{- /* The configuration's audit, as JSON. The files of the Secret are those that it does not name itself. */ -}}
{{- define "kubecdc.audit" -}}
{{- $audit := deepCopy .Values.config.audit -}}
{{- if .Values.audit.secret -}}
{{- $dir := include "kubecdc.auditDir" . -}}
{{- $tls := dict "cert" (printf "%s/tls.crt" $dir) "key" (printf "%s/tls.key" $dir) -}}
{{- $audit = mergeOverwrite (dict "tls" $tls "clientCA" (printf "%s/ca.crt" $dir)) $audit -}}
{{- end -}}
{{- toJson $audit -}}
{{- end -}}

{{- /* Whether there are several exporters, which share one task or several. */ -}}
{{- define "kubecdc.pair" -}}
{{- gt (int .Values.replicas) 1 -}}
{{- end -}}

{{- /* The lease by which they choose, as NAMESPACE/NAME; "" is none, where one exporter is alone. Each of several clusters
has its own. */ -}}
{{- define "kubecdc.lease" -}}
{{- $suffix := ternary "-{cluster}" "" (not (empty .Values.config.clusters)) -}}
{{- if or (eq (include "kubecdc.pair" .) "true") (not (kindIs "invalid" .Values.config.ha)) -}}
{{- dig "lease" "" (default dict .Values.config.ha) | default (printf "%s/%s%s" .Release.Namespace (include "kubecdc.fullname" .) $suffix) -}}
{{- end -}}
{{- end -}}

{{- /* Whether there are several tasks, and so leases of tasks and of exporters. */ -}}
{{- define "kubecdc.split" -}}
{{- or (not (empty .Values.config.clusters)) (not (kindIs "invalid" .Values.config.tasks)) -}}
{{- end -}}

{{- /* The exporter's configuration, which names the lease that the role is for, and the files of audit.secret. */ -}}
{{- define "kubecdc.config" -}}
{{- $config := .Values.config -}}
{{- if $config.audit -}}
{{- $config = set (deepCopy $config) "audit" (include "kubecdc.audit" . | fromJson) -}}
{{- end -}}
{{- with include "kubecdc.lease" . -}}
{{- $config = set (deepCopy $config) "ha" (set (deepCopy (default dict $config.ha)) "lease" .) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- /* What the container asks for. Without a volume, the node must have room for the state. */ -}}
{{- define "kubecdc.resources" -}}
{{- $resources := deepCopy .Values.resources -}}
{{- if eq (include "kubecdc.pair" .) "true" -}}
{{- $room := dict "requests" (dict "ephemeral-storage" .Values.persistence.size) -}}
{{- $resources = mergeOverwrite $room $resources -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}
