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

{{/* Files of secrets, one per variable. Takes a dict: root, keys (keys of the secret by variable). The
     entry point reads them as root, or as the user of a service that starts no user code. */}}
{{- define "nni.secretsVolume" -}}
- name: secrets
  secret:
    secretName: {{ include "nni.secretName" .root }}
    defaultMode: 0440
    items:
      {{- range $variable, $key := .keys }}
      - {key: {{ $key }}, path: {{ $variable }}}
      {{- end }}
{{- end -}}

{{- define "nni.secretsMount" -}}
- {name: secrets, mountPath: /etc/nni/secrets, readOnly: true}
{{- end -}}

{{/* Secret that the chart makes for certificates: ca.crt, and NAME.crt and NAME.key of each service. */}}
{{- define "nni.ownTlsSecretName" -}}
{{- if .Values.auth.existingSecret -}}
{{ printf "%s-tls" (include "nni.name" .) }}
{{- else -}}
{{ include "nni.secretName" . }}
{{- end -}}
{{- end -}}

{{/* Secret of a service with ca.crt, tls.crt and tls.key; empty: the chart makes them. Takes a dict:
     root, service. */}}
{{- define "nni.existingTlsSecret" -}}
{{ get (.root.Values.tls.existingSecrets | default dict) .service | default .root.Values.tls.existingSecret }}
{{- end -}}

{{/* Where the certificates are, or that there are none. */}}
{{- define "nni.tlsEnvironment" -}}
{{- if .Values.tls.enabled -}}
- {name: NNI_TLS_CERT_FILE, value: /etc/nni/tls/tls.crt}
- {name: NNI_TLS_KEY_FILE, value: /etc/nni/tls/tls.key}
- {name: NNI_TLS_CA_FILE, value: /etc/nni/tls/ca.crt}
{{- else -}}
- {name: NNI_INSECURE, value: "1"}
{{- end -}}
{{- end -}}

{{/* What an agent knows of them: whom it can trust. */}}
{{- define "nni.agentTlsEnvironment" -}}
{{- if .Values.tls.enabled -}}
- {name: NNI_TLS_CA_FILE, value: /etc/nni/tls/ca.crt}
{{- else -}}
- {name: NNI_INSECURE, value: "1"}
{{- end -}}
{{- end -}}

{{- define "nni.agentTlsVolume" -}}
{{- if .Values.tls.enabled -}}
- name: tls
  secret:
    secretName: {{ include "nni.existingTlsSecret" (dict "root" . "service" "trial-runner") | default (include "nni.ownTlsSecretName" .) }}
    defaultMode: 0444
    items:
      - {key: ca.crt, path: ca.crt}
{{- end -}}
{{- end -}}

{{- define "nni.tlsMount" -}}
{{- if .Values.tls.enabled -}}
- {name: tls, mountPath: /etc/nni/tls, readOnly: true}
{{- end -}}
{{- end -}}

{{/* Takes a dict: root, service. */}}
{{- define "nni.tlsVolume" -}}
{{- if .root.Values.tls.enabled -}}
{{- $existing := include "nni.existingTlsSecret" . -}}
{{- $own := empty $existing | ternary .service "tls" -}}
- name: tls
  secret:
    secretName: {{ $existing | default (include "nni.ownTlsSecretName" .root) }}
    defaultMode: 0440
    items:
      - {key: ca.crt, path: ca.crt, mode: 0444}
      - {key: {{ $own }}.crt, path: tls.crt, mode: 0444}
      - {key: {{ $own }}.key, path: tls.key}
{{- end -}}
{{- end -}}

{{/* An authority, and a certificate and a key of each service, as entries of a secret. Takes a dict:
     root, kept. */}}
{{- define "nni.tlsEntries" -}}
{{- $root := .root -}}
{{- $kept := .kept -}}
{{- $services := list "manager" "dispatcher" "compressor" "nas" "fleet" "redis" "nats" -}}
{{- /* An earlier version had fewer services; a certificate cannot be added, for no key of the authority is kept. */ -}}
{{- $complete := not $root.Values.tls.renew -}}
{{- range $one := $services -}}
{{- if not (get $kept (printf "%s.crt" $one)) -}}
{{- $complete = false -}}
{{- end -}}
{{- end -}}
{{- if $complete -}}
ca.crt: {{ get $kept "ca.crt" }}
{{- range $one := $services }}
{{ $one }}.crt: {{ get $kept (printf "%s.crt" $one) }}
{{ $one }}.key: {{ get $kept (printf "%s.key" $one) }}
{{- end }}
{{- else -}}
{{- $name := include "nni.name" $root -}}
{{- $authority := genCA (printf "%s authority" $name) 1095 -}}
ca.crt: {{ $authority.Cert | b64enc }}
{{- range $one := $services }}
{{- $host := printf "%s-%s" $name $one -}}
{{- $names := list "localhost" $host (printf "%s.%s" $host $root.Release.Namespace) (printf "%s.%s.svc" $host $root.Release.Namespace) -}}
{{- if eq $one "manager" -}}
{{- $names = concat (append $names (printf "%s-front" $host)) $root.Values.tls.names -}}
{{- end -}}
{{- if eq $one "nats" -}}
{{- range $index := until (int $root.Values.nats.replicas) -}}
{{- $names = append $names (printf "%s-nats-%d.%s-nats" $name $index $name) -}}
{{- end -}}
{{- end -}}
{{- $made := genSignedCert $host (list "127.0.0.1") $names 397 $authority }}
{{ $one }}.crt: {{ $made.Cert | b64enc }}
{{ $one }}.key: {{ $made.Key | b64enc }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Namespace of the agents that the fleet starts. */}}
{{- define "nni.agentsNamespace" -}}
{{ .Values.fleet.agentsNamespace | default .Release.Namespace }}
{{- end -}}

{{/* Volumes that managers and fleet share. */}}
{{- define "nni.fleetVolumes" -}}
- name: agents
  persistentVolumeClaim: {claimName: {{ include "nni.name" . }}-agents}
- name: pool-secrets
  persistentVolumeClaim: {claimName: {{ include "nni.name" . }}-pool-secrets}
{{- end -}}

{{/* Addresses of the servers of the bus. */}}
{{- define "nni.natsUrl" -}}
{{- $name := include "nni.name" . -}}
{{- range $index := until (int .Values.nats.replicas) -}}
{{- if $index }},{{ end -}}
{{ if $.Values.tls.enabled }}tls{{ else }}nats{{ end }}://{{ $name }}-nats-{{ $index }}.{{ $name }}-nats:4222
{{- end -}}
{{- end -}}

{{/* What every service reads from its environment. */}}
{{- define "nni.commonEnvironment" -}}
- {name: NNI_NATS_URL, value: {{ include "nni.natsUrl" . | quote }}}
- {name: NNI_BUS_REPLICAS, value: {{ .Values.nats.replicas | quote }}}
- {name: NNI_LOG_LEVEL, value: {{ .Values.log.level }}}
{{- if .Values.observability.metrics }}
- {name: NNI_METRICS, value: "0.0.0.0:9464"}
{{- end }}
{{- with .Values.observability.tracesEndpoint }}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }}}
{{- end }}
- {name: NNI_VERSION, value: {{ .Chart.AppVersion | quote }}}
- {name: NNI_HEALTH, value: "0.0.0.0:8081"}
# No secret is in an environment: the entry point reads files.
- {name: NNI_SECRETS_FILE, value: /etc/nni/secrets}
{{- end -}}

{{/* The same, and what agents do not get: certificate and byte store. */}}
{{- define "nni.environment" -}}
{{ include "nni.commonEnvironment" . }}
{{ include "nni.tlsEnvironment" . }}
- {name: NNI_S3_ENDPOINT, value: {{ required "s3.endpoint must name an S3 server, e.g. https://s3.eu-central-1.amazonaws.com" .Values.s3.endpoint | quote }}}
- {name: NNI_S3_BUCKET, value: {{ .Values.s3.bucket | quote }}}
- {name: NNI_S3_PREFIX, value: {{ .Values.s3.prefix | quote }}}
- {name: NNI_S3_REGION, value: {{ .Values.s3.region | quote }}}
{{- end -}}

{{/* Rights of every pod: none beyond its own files. */}}
{{- define "nni.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{ include "nni.podSecurityContext" . }}
{{- end -}}

{{- define "nni.podSecurityContext" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  # Groups of strategies, algorithm hosts and trials, whose files the manager reads and deletes.
  supplementalGroups: [65530, 65531, 65533]
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Rights of a pod with user code: the entry point starts as root, reads the secrets, and becomes the
     service's user, which starts user code as another one. */}}
{{- define "nni.codePodSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsUser: 0
  runAsGroup: 0
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* To become another user and to end its processes; nothing else of root's rights. */}}
{{- define "nni.codeContainerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL], add: [SETUID, SETGID, KILL]}
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

{{/* Alive: its event loop answers. Ready: it takes work. The kubelet asks without a token, and no
     process is started for it. */}}
{{- define "nni.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: health}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /livez, port: health}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}

{{/* Keys of the passwords of all users of the bus, as JSON. */}}
{{- define "nni.busUsers" -}}
{{- $keys := list "nats-manager-password" "nats-dispatcher-password" "nats-compressor-password" "nats-nas-password" "nats-fleet-password" -}}
{{- range $pool := .Values.runnerPools -}}
{{- $keys = append $keys (printf "nats-pool-%s-password" $pool.name) -}}
{{- end -}}
{{- $keys | toJson -}}
{{- end -}}

{{/* Users of the bus and what they may do: the text of svc_common.messaging.permissions, which a
     test compares. Passwords come from the environment. */}}
{{- define "nni.usersConf" -}}
accounts {
  "NNI" {
    jetstream: enabled
    exports: [
      {service: "nni.inbox.*.*"}
      {service: "nni.presence.*"}
      {service: "nni.log.*.*"}
      {service: "nni.pool.*.state"}
      {service: "nni.pool.*.problems"}
      {service: "nni.pool.*.front"}
      {service: "$JS.ACK.TASKS.>"}
      {service: "$JS.API.STREAM.MSG.GET.EXPERIMENTS"}
      {service: "$JS.API.STREAM.INFO.EXPERIMENTS"}
      {service: "$JS.API.CONSUMER.MSG.NEXT.TASKS.*", response_type: stream, threshold: "70s"}
      {service: "$JS.API.DIRECT.GET.EXPERIMENTS", response_type: stream, threshold: "70s"}
      {service: "$JS.API.DIRECT.GET.POOLS", response_type: stream, threshold: "70s"}
      {stream: "nni.control.*"}
      {stream: "nni.copy.*"}
      {stream: "nni.copy.pool.*.need"}
      {stream: "nni.copy.pool.*.definition"}
      {stream: "nni.copy.pool.*.check"}
      {stream: "nni.copy.pool.*.invitations"}
    ]
    users: [
      {
        user: "manager", password: $NNI_NATS_MANAGER_PASSWORD
        permissions: {
          publish: {allow: ["nni.>", "$JS.>", "_INBOX.manager.>"]}
          subscribe: {allow: ["nni.>", "_INBOX.manager.>"]}
        }
      }
    ]
  }
  "user-dispatcher" {
    imports: [
      {service: {account: "NNI", subject: "nni.inbox.*.dispatcher"}}
      {service: {account: "NNI", subject: "$JS.API.STREAM.INFO.EXPERIMENTS"}, to: "nni.api.STREAM.INFO.EXPERIMENTS"}
      {service: {account: "NNI", subject: "$JS.API.STREAM.MSG.GET.EXPERIMENTS"}, to: "nni.api.STREAM.MSG.GET.EXPERIMENTS"}
      {service: {account: "NNI", subject: "$JS.API.DIRECT.GET.EXPERIMENTS"}, to: "nni.api.DIRECT.GET.EXPERIMENTS"}
      {stream: {account: "NNI", subject: "nni.copy.*"}}
    ]
    users: [
      {
        user: "dispatcher", password: $NNI_NATS_DISPATCHER_PASSWORD
        permissions: {
          publish: {allow: ["nni.inbox.*.dispatcher", "nni.api.STREAM.INFO.EXPERIMENTS", "nni.api.STREAM.MSG.GET.EXPERIMENTS", "nni.api.DIRECT.GET.EXPERIMENTS", "_INBOX.dispatcher.>"]}
          subscribe: {allow: ["nni.copy.*", "_INBOX.dispatcher.>"]}
        }
      }
    ]
  }
  "user-compressor" {
    imports: [
      {service: {account: "NNI", subject: "nni.inbox.*.compressor"}}
      {service: {account: "NNI", subject: "$JS.API.STREAM.INFO.EXPERIMENTS"}, to: "nni.api.STREAM.INFO.EXPERIMENTS"}
      {service: {account: "NNI", subject: "$JS.API.STREAM.MSG.GET.EXPERIMENTS"}, to: "nni.api.STREAM.MSG.GET.EXPERIMENTS"}
      {service: {account: "NNI", subject: "$JS.API.DIRECT.GET.EXPERIMENTS"}, to: "nni.api.DIRECT.GET.EXPERIMENTS"}
      {stream: {account: "NNI", subject: "nni.copy.*"}}
    ]
    users: [
      {
        user: "compressor", password: $NNI_NATS_COMPRESSOR_PASSWORD
        permissions: {
          publish: {allow: ["nni.inbox.*.compressor", "nni.api.STREAM.INFO.EXPERIMENTS", "nni.api.STREAM.MSG.GET.EXPERIMENTS", "nni.api.DIRECT.GET.EXPERIMENTS", "_INBOX.compressor.>"]}
          subscribe: {allow: ["nni.copy.*", "_INBOX.compressor.>"]}
        }
      }
    ]
  }
  "user-nas" {
    imports: [
      {service: {account: "NNI", subject: "nni.inbox.*.nas"}}
      {service: {account: "NNI", subject: "$JS.API.STREAM.INFO.EXPERIMENTS"}, to: "nni.api.STREAM.INFO.EXPERIMENTS"}
      {service: {account: "NNI", subject: "$JS.API.STREAM.MSG.GET.EXPERIMENTS"}, to: "nni.api.STREAM.MSG.GET.EXPERIMENTS"}
      {service: {account: "NNI", subject: "$JS.API.DIRECT.GET.EXPERIMENTS"}, to: "nni.api.DIRECT.GET.EXPERIMENTS"}
      {stream: {account: "NNI", subject: "nni.copy.*"}}
    ]
    users: [
      {
        user: "nas", password: $NNI_NATS_NAS_PASSWORD
        permissions: {
          publish: {allow: ["nni.inbox.*.nas", "nni.api.STREAM.INFO.EXPERIMENTS", "nni.api.STREAM.MSG.GET.EXPERIMENTS", "nni.api.DIRECT.GET.EXPERIMENTS", "_INBOX.nas.>"]}
          subscribe: {allow: ["nni.copy.*", "_INBOX.nas.>"]}
        }
      }
    ]
  }
  "user-fleet" {
    exports: [
      {stream: "nni.control.*"}
      {service: "nni.presence.*"}
    ]
    imports: [
      {service: {account: "NNI", subject: "nni.pool.*.state"}}
      {service: {account: "NNI", subject: "nni.pool.*.problems"}}
      {service: {account: "NNI", subject: "nni.pool.*.front"}}
      {service: {account: "NNI", subject: "$JS.API.DIRECT.GET.POOLS"}, to: "nni.api.DIRECT.GET.POOLS"}
      {stream: {account: "NNI", subject: "nni.copy.pool.*.need"}}
      {stream: {account: "NNI", subject: "nni.copy.pool.*.definition"}}
      {stream: {account: "NNI", subject: "nni.copy.pool.*.check"}}
      {stream: {account: "NNI", subject: "nni.copy.pool.*.invitations"}}
    ]
    users: [
      {
        user: "fleet", password: $NNI_NATS_FLEET_PASSWORD
        permissions: {
          publish: {allow: ["nni.pool.*.state", "nni.pool.*.problems", "nni.pool.*.front", "nni.control.*", "nni.api.DIRECT.GET.POOLS", "_INBOX.fleet.>"]}
          subscribe: {allow: ["nni.copy.pool.*.need", "nni.copy.pool.*.definition", "nni.copy.pool.*.check", "nni.copy.pool.*.invitations", "nni.presence.*", "_INBOX.fleet.>"]}
        }
      }
    ]
  }
{{- if .Values.fleet.enabled }}
  "$SYS" {
    users: [
      {
        user: "reloader", password: $NNI_NATS_FLEET_PASSWORD
        permissions: {
          publish: {allow: ["$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.*.RELOAD", "_INBOX.reloader.>"]}
          subscribe: {allow: ["_INBOX.reloader.>"]}
        }
      }
    ]
  }
{{- end }}
{{- range $index, $pool := .Values.runnerPools }}
  "user-pool-{{ $pool.name }}" {
    imports: [
      {service: {account: "NNI", subject: "nni.inbox.*.*"}}
      {service: {account: "NNI", subject: "nni.presence.*"}}
      {service: {account: "NNI", subject: "nni.log.*.*"}}
      {service: {account: "NNI", subject: "$JS.API.CONSUMER.MSG.NEXT.TASKS.pool-{{ $pool.name }}"}, to: "nni.api.CONSUMER.MSG.NEXT.TASKS.pool-{{ $pool.name }}"}
      {service: {account: "NNI", subject: "$JS.API.CONSUMER.MSG.NEXT.TASKS.retry-{{ $pool.name }}"}, to: "nni.api.CONSUMER.MSG.NEXT.TASKS.retry-{{ $pool.name }}"}
      {service: {account: "NNI", subject: "$JS.ACK.TASKS.pool-{{ $pool.name }}.>"}}
      {service: {account: "NNI", subject: "$JS.ACK.TASKS.retry-{{ $pool.name }}.>"}}
      {stream: {account: "NNI", subject: "nni.control.*"}}
      {service: {account: "user-fleet", subject: "nni.presence.*"}}
      {stream: {account: "user-fleet", subject: "nni.control.*"}}
    ]
    users: [
      {
        user: "pool-{{ $pool.name }}", password: $NNI_NATS_POOL_{{ $index }}_PASSWORD
        permissions: {
          publish: {allow: ["nni.inbox.*.*", "nni.presence.*", "nni.log.*.*", "nni.api.CONSUMER.MSG.NEXT.TASKS.pool-{{ $pool.name }}", "nni.api.CONSUMER.MSG.NEXT.TASKS.retry-{{ $pool.name }}", "$JS.ACK.TASKS.pool-{{ $pool.name }}.>", "$JS.ACK.TASKS.retry-{{ $pool.name }}.>", "_INBOX.pool-{{ $pool.name }}.>"], deny: ["nni.inbox.*.compressor", "nni.inbox.*.dispatcher", "nni.inbox.*.nas"]}
          subscribe: {allow: ["nni.control.*", "_INBOX.pool-{{ $pool.name }}.>"]}
        }
      }
    ]
  }
{{- end }}
{{- if .Values.fleet.enabled }}
  include agents/agents.conf
{{- end }}
}
{{- end -}}

