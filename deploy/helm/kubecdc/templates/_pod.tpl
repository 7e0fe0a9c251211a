{{- /* The template of the exporter's pods: of the one with a volume, and of two that have none. */ -}}
{{- define "kubecdc.pod" -}}
metadata:
  labels:
    {{- include "kubecdc.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # The exporter reads its configuration when it starts.
    checksum/config: {{ include "kubecdc.config" . | sha256sum }}
    {{- if .Values.restartOnSecrets }}
    {{- with include "kubecdc.foreign" . }}
    checksum/secrets: {{ . | sha256sum }}
    {{- end }}
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "kubecdc.serviceAccount" . }}
  automountServiceAccountToken: true
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    {{- with .Values.podSecurity.runAsUser }}
    runAsUser: {{ int64 . }}
    {{- end }}
    {{- with .Values.podSecurity.runAsGroup }}
    runAsGroup: {{ int64 . }}
    {{- end }}
    {{- with .Values.podSecurity.fsGroup }}
    fsGroup: {{ int64 . }}
    fsGroupChangePolicy: OnRootMismatch
    {{- end }}
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: exporter
      image: {{ include "kubecdc.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: {{ concat (list "run" "-f" "/etc/kubecdc/config/config.yaml") .Values.extraArgs | toJson }}
      {{- if or .Values.secretEnv .Values.env }}
      env:
        {{- range $name, $ref := .Values.secretEnv }}
        - name: {{ $name }}
          valueFrom:
            secretKeyRef: {name: {{ $ref.name | quote }}, key: {{ $ref.key | quote }}}
        {{- end }}
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      ports:
        - {name: http, containerPort: {{ include "kubecdc.port" . }}, protocol: TCP}
        {{- with include "kubecdc.auditPort" . }}
        - {name: audit, containerPort: {{ . }}, protocol: TCP}
        {{- end }}
      # Before it serves, the exporter asks the API server what there is, and opens its state.
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 5
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 30
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      resources:
        {{- include "kubecdc.resources" . | nindent 8 }}
      volumeMounts:
        - {name: state, mountPath: {{ .Values.config.state.dir | quote }}}
        - {name: config, mountPath: /etc/kubecdc/config, readOnly: true}
        {{- if .Values.audit.secret }}
        - {name: audit, mountPath: {{ include "kubecdc.auditDir" . }}, readOnly: true}
        {{- end }}
        {{- range $i, $file := .Values.files }}
        - {name: files-{{ $i }}, mountPath: {{ $file.path | quote }}, readOnly: true}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- if eq (include "kubecdc.pair" .) "true" }}
    # A cache: what is lost with it is in the log of the state.
    - {name: state, emptyDir: {}}
    {{- else if .Values.persistence.existingClaim }}
    - name: state
      persistentVolumeClaim: {claimName: {{ .Values.persistence.existingClaim | quote }}}
    {{- end }}
    - name: config
      configMap: {name: {{ include "kubecdc.fullname" . }}}
    {{- with .Values.audit.secret }}
    # Renewed certificates are read for the next connection, so they do not start the pod anew.
    - name: audit
      secret: {secretName: {{ . | quote }}, defaultMode: 0440}
    {{- end }}
    {{- range $i, $file := .Values.files }}
    - name: files-{{ $i }}
      {{- if $file.secret }}
      secret: {secretName: {{ $file.secret | quote }}, defaultMode: 0440}
      {{- else }}
      configMap: {name: {{ $file.configMap | quote }}}
      {{- end }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if or .Values.tolerations (not (kindIs "invalid" .Values.deadNodeSeconds)) }}
  tolerations:
    {{- with .Values.tolerations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if not (kindIs "invalid" .Values.deadNodeSeconds) }}
    # Kubernetes' own default is five minutes, in which the API server forgets what changed.
    - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: {{ int64 .Values.deadNodeSeconds }}}
    - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: {{ int64 .Values.deadNodeSeconds }}}
    {{- end }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- else }}
  {{- if eq (include "kubecdc.pair" .) "true" }}
  topologySpreadConstraints:
    # Two on one node die together. A node that is dead counts for none, so that its pod finds a place.
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: DoNotSchedule
      nodeTaintsPolicy: Honor
      matchLabelKeys: [pod-template-hash]
      labelSelector:
        matchLabels:
          {{- include "kubecdc.selector" . | nindent 10 }}
    - maxSkew: 1
      topologyKey: topology.kubernetes.io/zone
      whenUnsatisfiable: ScheduleAnyway
      nodeTaintsPolicy: Honor
      matchLabelKeys: [pod-template-hash]
      labelSelector:
        matchLabels:
          {{- include "kubecdc.selector" . | nindent 10 }}
  {{- end }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
