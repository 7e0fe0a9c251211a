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

{{- define "kubecdc.config" -}}
{{- toYaml .Values.config -}}
{{- end -}}
