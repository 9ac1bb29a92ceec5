{{/* Start of the names of all objects. */}}
{{- define "nni.name" -}}
{{- .Release.Name | trunc 30 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels by which objects are found. Takes a dict: root, component. */}}
{{- define "nni.selector" -}}
app.kubernetes.io/name: nni
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "nni.labels" -}}
{{ include "nni.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "nni.image" -}}
{{ .root.Values.image.registry }}/{{ .service }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end -}}

{{- define "nni.secretName" -}}
{{ .Values.auth.existingSecret | default (printf "%s-auth" (include "nni.name" .)) }}
{{- end -}}

{{/* One variable from the secret. Takes a dict: root, variable, key. */}}
{{- define "nni.secretVariable" -}}
- name: {{ .variable }}
  valueFrom: {secretKeyRef: {name: {{ include "nni.secretName" .root }}, key: {{ .key }}}}
{{- end -}}

{{/* Addresses of the servers of the bus. */}}
{{- define "nni.natsUrl" -}}
{{- $name := include "nni.name" . -}}
{{- range $index := until (int .Values.nats.replicas) -}}
{{- if $index }},{{ end -}}
nats://{{ $name }}-nats-{{ $index }}.{{ $name }}-nats:4222
{{- end -}}
{{- end -}}

{{/* What every service reads from its environment. */}}
{{- define "nni.environment" -}}
- {name: NNI_NATS_URL, value: {{ include "nni.natsUrl" . | quote }}}
- {name: NNI_BUS_REPLICAS, value: {{ .Values.nats.replicas | quote }}}
- {name: NNI_LOG_LEVEL, value: {{ .Values.log.level }}}
- {name: NNI_VERSION, value: {{ .Chart.AppVersion | quote }}}
- {name: NNI_S3_ENDPOINT, value: {{ required "s3.endpoint must name an S3 server, e.g. https://s3.eu-central-1.amazonaws.com" .Values.s3.endpoint | quote }}}
- {name: NNI_S3_BUCKET, value: {{ .Values.s3.bucket | quote }}}
- {name: NNI_S3_PREFIX, value: {{ .Values.s3.prefix | quote }}}
- {name: NNI_S3_REGION, value: {{ .Values.s3.region | quote }}}
{{ include "nni.secretVariable" (dict "root" . "variable" "NNI_TOKEN" "key" "token") }}
{{ include "nni.secretVariable" (dict "root" . "variable" "NNI_S3_ACCESS_KEY" "key" "s3-access-key") }}
{{ include "nni.secretVariable" (dict "root" . "variable" "NNI_S3_SECRET_KEY" "key" "s3-secret-key") }}
{{- end -}}

{{/* Rights of every pod: none beyond its own files. */}}
{{- define "nni.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "nni.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "nni.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Is the service healthy? Takes the address of its gRPC server within the pod. */}}
{{- define "nni.probes" -}}
{{- $command := printf "{command: [python, -P, -m, svc_common.health, %q]}" . -}}
startupProbe:
  exec: {{ $command }}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
readinessProbe:
  exec: {{ $command }}
  periodSeconds: 10
  timeoutSeconds: 5
livenessProbe:
  exec: {{ $command }}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}
