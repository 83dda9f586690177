{{- define "groundwork.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "groundwork.labels" -}}
app.kubernetes.io/name: groundwork
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* What selectors use: nothing that an upgrade changes. Called with a list of the root and the component. */ -}}
{{- define "groundwork.selector" -}}
app.kubernetes.io/name: groundwork
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "groundwork.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "groundwork.secret" -}}
{{- if .Values.secret.existing -}}
{{ .Values.secret.existing }}
{{- else if .Values.secret.values -}}
{{ include "groundwork.name" . }}-secret
{{- else -}}
{{ fail "Set secret.existing to the name of a Secret with DATABASE_URL and GROUNDWORK_SECRET_KEY." }}
{{- end -}}
{{- end }}

{{- /* Settings as they reach every container, the ConfigMap's and the migrate Job's alike. */ -}}
{{- define "groundwork.settings" -}}
{{- if not (or .Values.files.existingClaim .Values.config.GROUNDWORK_FILES_URL) -}}
{{ fail "Set config.GROUNDWORK_FILES_URL to an object store, or files.existingClaim to a claim that many nodes can write to." }}
{{- end -}}
{{- if and (has (.Values.config.GROUNDWORK_TRUST_PROXY | default "0" | trim | lower) (list "1" "true" "yes" "on")) (ne .Values.service.type "ClusterIP") (not .Values.service.onlyProxyReaches) -}}
{{ fail (printf "config.GROUNDWORK_TRUST_PROXY is 1, but a Service of type %s lets callers past the proxy, who then name their own address. Set it to 0, or service.onlyProxyReaches to true if nobody else reaches the port." .Values.service.type) }}
{{- end -}}
{{- $fixed := dict "GROUNDWORK_DATA_DIR" "/data/groundwork" "GROUNDWORK_WORKER_HEALTH_PORT" "9000" "GROUNDWORK_WORKER_HEALTH_HOST" "0.0.0.0" -}}
{{- $_ := required "Set config.GROUNDWORK_ALLOWED_HOSTS to the host name that people use." .Values.config.GROUNDWORK_ALLOWED_HOSTS -}}
{{- range $name, $value := merge $fixed .Values.config }}
{{- if ne $value "" }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The web server answers only to names that it knows: the first one, as config.healthcheck does. */ -}}
{{- define "groundwork.probeHost" -}}
{{- $first := .Values.config.GROUNDWORK_ALLOWED_HOSTS | splitList "," | first | trim -}}
{{- if eq $first "*" -}}localhost{{- else -}}{{ $first | trimPrefix "." }}{{- end -}}
{{- end }}

{{- define "groundwork.pod" -}}
automountServiceAccountToken: false
# Else a Service groundwork-web gives variables GROUNDWORK_WEB_... to each pod, and unknown settings are refused.
enableServiceLinks: false
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "groundwork.container" -}}
image: {{ include "groundwork.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - {name: data, mountPath: /data}
  - {name: tmp, mountPath: /tmp}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* The folder of the data directory: a claim that all share, or one of the pod's own when files lie in an object store. */ -}}
{{- define "groundwork.volumes" -}}
- name: data
  {{- if .Values.files.existingClaim }}
  persistentVolumeClaim:
    claimName: {{ .Values.files.existingClaim }}
  {{- else }}
  emptyDir: {}
  {{- end }}
- name: tmp
  emptyDir: {}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What a pod is known by: labels of the operator's own never replace those that selectors use. */ -}}
{{- define "groundwork.podLabels" -}}
{{- toYaml (merge (include "groundwork.selector" . | fromYaml) (index . 0).Values.podLabels) }}
{{- end }}

{{- /* A pod is made again when what it reads at its start has changed. A Secret that the chart did not make isn't seen here. */ -}}
{{- define "groundwork.podAnnotations" -}}
checksum/settings: {{ include "groundwork.settings" . | sha256sum }}
{{- if and .Values.secret.values (not .Values.secret.existing) }}
checksum/secret: {{ toJson .Values.secret.values | sha256sum }}
{{- end }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "groundwork.environment" -}}
envFrom:
  - configMapRef:
      name: {{ include "groundwork.name" . }}-settings
  - secretRef:
      name: {{ include "groundwork.secret" . }}
env:
  - {name: HOME, value: /tmp}
{{- end }}

{{- /* How Prometheus asks web and workers alike; the token is that of the pods' own Secret. */ -}}
{{- define "groundwork.scrape" -}}
path: {{ .Values.serviceMonitor.path }}
interval: {{ .Values.serviceMonitor.interval }}
authorization:
  credentials:
    name: {{ include "groundwork.secret" . }}
    key: GROUNDWORK_METRICS_TOKEN
{{- end }}

{{- /* A pod with a data directory of its own fills it; one that is shared is filled by the migrate Job. */ -}}
{{- define "groundwork.prepared" -}}
{{- if not .Values.files.existingClaim }}
initContainers:
  - name: static-files
    command: ["python", "manage.py", "collectstatic", "--noinput"]
    {{- include "groundwork.container" . | nindent 4 }}
    {{- include "groundwork.environment" . | nindent 4 }}
    resources: {requests: {cpu: 100m, memory: 256Mi}, limits: {memory: 1Gi}}
  - name: embedder
    command: ["python", "manage.py", "embedder_prepare"]
    {{- include "groundwork.container" . | nindent 4 }}
    {{- include "groundwork.environment" . | nindent 4 }}
    resources: {requests: {cpu: 100m, memory: 512Mi}, limits: {memory: 2Gi}}
{{- end }}
{{- end }}
