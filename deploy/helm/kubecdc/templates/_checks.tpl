{{- /*
What the schema cannot say. Each message names the value, and what to change.
*/ -}}
{{- define "kubecdc.checks" -}}
{{- include "kubecdc.checkPlain" (dict "at" "config" "value" .Values.config) -}}
{{- range $i, $sink := .Values.config.sinks -}}
  {{- $at := printf "config.sinks[%d]" $i -}}
  {{- with $sink.file -}}
    {{- include "kubecdc.checkPath" (dict "at" (printf "%s.file.path" $at) "path" .path "root" $) -}}
  {{- end -}}
  {{- with $sink.deadLetter -}}
    {{- with .dir -}}{{- include "kubecdc.checkPath" (dict "at" (printf "%s.deadLetter.dir" $at) "path" . "root" $) -}}{{- end -}}
  {{- end -}}
{{- end -}}
{{- if eq (include "kubecdc.pair" .) "true" -}}
  {{- include "kubecdc.checkPair" . -}}
{{- else if not .Values.persistence.existingClaim -}}
  {{- include "kubecdc.checkSpools" . -}}
  {{- include "kubecdc.checkResize" . -}}
{{- end -}}
{{- include "kubecdc.checkLease" . -}}
{{- include "kubecdc.checkAudit" . -}}
{{- end -}}

{{- /* The audit webhook has certificates, and a port of its own. */ -}}
{{- define "kubecdc.checkAudit" -}}
{{- $port := include "kubecdc.auditPort" . -}}
{{- if and .Values.audit.secret (not $port) -}}
  {{- fail "audit.secret: nothing receives the audit webhook: set config.audit.listen, such as \":9443\", or leave audit.secret out (docs/audit.md)" -}}
{{- end -}}
{{- if $port -}}
  {{- $tls := default dict .Values.config.audit.tls -}}
  {{- if not (or .Values.audit.secret (and $tls.cert $tls.key .Values.config.audit.clientCA)) -}}
    {{- fail "audit.secret: the audit webhook needs certificates: name a Secret with tls.crt, tls.key and ca.crt, or set config.audit.tls and config.audit.clientCA to paths below one of files (docs/audit.md)" -}}
  {{- end -}}
  {{- if eq $port (include "kubecdc.port" .) -}}
    {{- fail (printf "config.audit.listen: port %s is that of config.listen: choose another one" $port) -}}
  {{- end -}}
{{- end -}}
{{- range $i, $file := .Values.files -}}
  {{- if and $.Values.audit.secret (eq (trimSuffix "/" $file.path) (include "kubecdc.auditDir" $)) -}}
    {{- fail (printf "files[%d].path: audit.secret is mounted at %s: leave one of them out" $i (include "kubecdc.auditDir" $)) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{- /* Several exporters have nothing in common but the log of the state, and sinks that keep out whoever led before. */ -}}
{{- define "kubecdc.checkPair" -}}
{{- if kindIs "invalid" (dig "log" nil .Values.config.state) -}}
  {{- fail "replicas: several exporters have no volume, and hand over through the log of the state: set config.state.log.sink to the name of a sink in kafka or nats, or replicas to 1 (docs/high-availability.md)" -}}
{{- end -}}
{{- range $i, $sink := .Values.config.sinks -}}
  {{- if $sink.file -}}
    {{- fail (printf "config.sinks[%d].file: a file keeps nobody out, so a leader that wakes up late would write beside its successor: write to kafka or nats, or set replicas to 1 (docs/high-availability.md)" $i) -}}
  {{- end -}}
{{- end -}}
{{- if .Values.persistence.existingClaim -}}
  {{- fail "persistence.existingClaim: several exporters have a state each, without a volume: leave it out, or set replicas to 1" -}}
{{- end -}}
{{- include "kubecdc.checkSpools" . -}}
{{- end -}}

{{- /* The role is for one lease, whose name must be known here. */ -}}
{{- define "kubecdc.checkLease" -}}
{{- $lease := include "kubecdc.lease" . | replace "{cluster}" "x" -}}
{{- if and $lease (not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" $lease)) -}}
  {{- fail (printf "config.ha.lease: %q is no NAMESPACE/NAME, for which a role could be made: write both, without variables, or leave it out" $lease) -}}
{{- end -}}
{{- end -}}

{{- /* A ConfigMap is no place for a password: everybody who may read it has it. */ -}}
{{- define "kubecdc.checkPlain" -}}
{{- $at := .at -}}
{{- if kindIs "map" .value -}}
  {{- range $key, $value := .value -}}
    {{- $path := printf "%s.%s" $at $key -}}
    {{- if and (kindIs "string" $value) (has $key (list "password" "token" "clientSecret" "redactKey")) $value (eq (include "kubecdc.isPlain" $value) "true") -}}
      {{- fail (printf "%s: it would be readable in a ConfigMap: write ${NAME} here, and the Secret that has it under secretEnv.NAME" $path) -}}
    {{- end -}}
    {{- if and (kindIs "string" $value) (has $key (list "url" "tokenUrl")) -}}
      {{- range $url := splitList "," $value -}}
        {{- /* What is before the last @ is user and password, or a token alone. */ -}}
        {{- $login := regexFind "://[^/]*@" $url | trimPrefix "://" | trimSuffix "@" -}}
        {{- $secret := splitList ":" $login | rest | join ":" | default $login -}}
        {{- if and $secret (eq (include "kubecdc.isPlain" $secret) "true") -}}
          {{- fail (printf "%s: its password would be readable in a ConfigMap: write ${NAME} in its place, and the Secret that has it under secretEnv.NAME" $path) -}}
        {{- end -}}
      {{- end -}}
    {{- end -}}
    {{- include "kubecdc.checkPlain" (dict "at" $path "value" $value) -}}
  {{- end -}}
{{- else if kindIs "slice" .value -}}
  {{- range $i, $value := .value -}}
    {{- include "kubecdc.checkPlain" (dict "at" (printf "%s[%d]" $at $i) "value" $value) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{- /* Whether nothing of a text comes from the environment: $${ is the text ${ itself. */ -}}
{{- define "kubecdc.isPlain" -}}
{{- not (contains "${" (replace "$${" "" .)) -}}
{{- end -}}

{{- /* The container's own file system is read-only, and what is in it is lost with the pod. */ -}}
{{- define "kubecdc.checkPath" -}}
{{- $path := clean .path -}}
{{- $places := list .root.Values.config.state.dir -}}
{{- range .root.Values.extraVolumeMounts -}}{{- $places = append $places .mountPath -}}{{- end -}}
{{- $inside := or (eq $path "-") (hasPrefix "${" $path) -}}
{{- range $places -}}
  {{- $inside = or $inside (eq (trimSuffix "/" .) $path) (hasPrefix (printf "%s/" (trimSuffix "/" .)) $path) -}}
{{- end -}}
{{- if not $inside -}}
  {{- fail (printf "%s: %s is on no volume, so it cannot be written: use a path below %s, or add a volume with extraVolumes and extraVolumeMounts" .at $path .root.Values.config.state.dir) -}}
{{- end -}}
{{- end -}}

{{- /* A number of bytes: 1048576, "64Mi", "1.5Gi". What is none, such as ${SIZE}, is 0. */ -}}
{{- define "kubecdc.bytes" -}}
{{- $text := toString . -}}
{{- if kindIs "float64" . -}}{{- $text = printf "%.0f" . -}}{{- end -}}
{{- $factors := dict "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 -}}
{{- $number := regexFind "^[0-9]+([.][0-9]+)?" $text -}}
{{- $factor := get $factors (trimPrefix $number $text) -}}
{{- if and $number $factor -}}{{- printf "%.0f" (mulf (float64 $number) $factor) -}}{{- else -}}0{{- end -}}
{{- end -}}

{{- /* A spool that is larger than the volume fills it, and then nothing can be saved. */ -}}
{{- define "kubecdc.checkSpools" -}}
{{- $all := 0 -}}
{{- $spools := list -}}
{{- range $i, $sink := .Values.config.sinks -}}
  {{- $queue := default dict $sink.queue -}}
  {{- $spool := "" -}}
  {{- if has (toString $queue.full) (list "spool" "coalesce") -}}{{- $spool = default "10Gi" $queue.spool -}}{{- end -}}
  {{- if $spool -}}
    {{- $all = addf $all (include "kubecdc.bytes" $spool | float64) -}}
    {{- $spools = append $spools (printf "%s for config.sinks[%d].queue.spool" (toString $spool) $i) -}}
  {{- end -}}
{{- end -}}
{{- if gt (float64 $all) (include "kubecdc.bytes" .Values.persistence.size | float64) -}}
  {{- fail (printf "persistence.size: %s is less than the spools may take, which is %s: enlarge the volume, or lower the spools" .Values.persistence.size (join ", " $spools)) -}}
{{- end -}}
{{- end -}}

{{- /* Kubernetes does not let a StatefulSet change the size of its volumes. It is looked up where there is a cluster. */ -}}
{{- define "kubecdc.checkResize" -}}
{{- $name := include "kubecdc.fullname" . -}}
{{- $set := lookup "apps/v1" "StatefulSet" .Release.Namespace $name -}}
{{- $new := .Values.persistence.size -}}
{{- range (dig "spec" "volumeClaimTemplates" list $set) -}}
  {{- $have := .spec.resources.requests.storage -}}
  {{- if lt (include "kubecdc.bytes" $new | float64) (include "kubecdc.bytes" $have | float64) -}}
    {{- fail (printf "persistence.size: the volume of StatefulSet %s has %s, and no volume can become smaller: keep that size, or begin with a new state (docs/deploying.md, Changing the volume)" $name $have) -}}
  {{- end -}}
  {{- if ne (include "kubecdc.bytes" $have) (include "kubecdc.bytes" $new) -}}
    {{- fail (printf "persistence.size: the volume of StatefulSet %s has %s, and Kubernetes does not let it change to %s: run kubectl -n %s patch pvc state-%s-0 -p '{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"%s\"}}}}' and kubectl -n %s delete statefulset %s --cascade=orphan, then upgrade again (docs/deploying.md, Changing the volume)" $name $have $new $.Release.Namespace $name $new $.Release.Namespace $name) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{- /* What the Secrets and ConfigMaps have that the pod reads when it starts. "" is none, or no cluster. */ -}}
{{- define "kubecdc.foreign" -}}
{{- $all := dict -}}
{{- range $ref := .Values.secretEnv -}}
  {{- $_ := set $all (printf "secret/%s" $ref.name) (dig "data" dict (lookup "v1" "Secret" $.Release.Namespace $ref.name)) -}}
{{- end -}}
{{- range $file := .Values.files -}}
  {{- if $file.secret -}}
    {{- $_ := set $all (printf "secret/%s" $file.secret) (dig "data" dict (lookup "v1" "Secret" $.Release.Namespace $file.secret)) -}}
  {{- else -}}
    {{- $_ := set $all (printf "configmap/%s" $file.configMap) (dig "data" dict (lookup "v1" "ConfigMap" $.Release.Namespace $file.configMap)) -}}
  {{- end -}}
{{- end -}}
{{- if $all -}}{{- toJson $all -}}{{- end -}}
{{- end -}}
