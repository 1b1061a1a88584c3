{{- define "skep-registry.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name $name) }}{{ $name = printf "%s-%s" $name .Chart.Name }}{{ end -}}
{{- $name | trunc 44 | trimSuffix "-" -}}
{{- end }}

{{- define "skep-registry.selector" -}}
app.kubernetes.io/name: skep-registry
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "skep-registry.labels" -}}
{{ include "skep-registry.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "skep-registry.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end }}

{{/* Sources that follow the cluster which the pods run in, as {"all": [[namespace, …] or [] for all]}. */}}
{{- define "skep-registry.clusterSources" -}}
{{- $all := list -}}
{{- range .Values.config.sources -}}
{{- if and (hasKey . "kubernetes") (not (dig "kubeconfig" "" (.kubernetes | default dict))) -}}
{{- $all = append $all (dig "namespaces" list (.kubernetes | default dict)) -}}
{{- end -}}
{{- end -}}
{{- dict "all" $all | toJson -}}
{{- end }}

{{/* What values.schema.json cannot say. */}}
{{- define "skep-registry.check" -}}
{{- $database := .Values.database -}}
{{- range $key := list "database" "storage" -}}
{{- if hasKey $.Values.config $key }}{{ fail (printf "config.%s: set %s beside config, not in it" $key $key) }}{{ end -}}
{{- end -}}
{{- if not (hasKey .Values.config "auth") -}}
{{- fail "config.auth: name who may call: set config.auth.oauth.providers, or config.auth.mode to anonymous, which lets whoever reaches the registry read and write" -}}
{{- end -}}
{{- if and (not $database.host) (gt (int .Values.replicas) 1) -}}
{{- fail (printf "replicas: %d need PostgreSQL: set database.host, or keep one replica" (int .Values.replicas)) -}}
{{- end -}}
{{- if and $database.host (not $database.password.secretName) -}}
{{- fail "database.password.secretName: name the Secret with the password of database.user" -}}
{{- end -}}
{{- if and $database.migration.user (not $database.migration.password.secretName) -}}
{{- fail "database.migration.password.secretName: name the Secret with the password of database.migration.user" -}}
{{- end -}}
{{- end }}

{{/* The file registry.yaml. */}}
{{- define "skep-registry.config" -}}
{{- include "skep-registry.check" . -}}
{{- $config := deepCopy .Values.config -}}
{{- if eq (dig "auth" "mode" "oauth" $config) "anonymous" -}}
{{- $name := include "skep-registry.name" . -}}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- $config = mergeOverwrite (dict "auth" (dict "allowedHosts" $hosts)) $config -}}
{{- end -}}
{{- if .Values.serviceMonitor.enabled -}}
{{- $metrics := dict "telemetry" (dict "endpoint" "") -}}
{{- $config = mergeOverwrite $metrics $config (dict "telemetry" (dict "enabled" true "metrics" (dict "enabled" true))) -}}
{{- end -}}
{{- with .Values.database -}}
{{- if .host -}}
{{- $database := dict "host" .host "port" (int .port) "database" .name "user" .user "sslMode" .sslMode -}}
{{- if .ca.configMapName }}{{ $_ := set $database "sslRootCert" (printf "/etc/skep-registry-ca/%s" .ca.key) }}{{ end -}}
{{- $_ := set $config "database" $database -}}
{{- else -}}
{{- $_ := set $config "storage" (dict "path" "/var/lib/skep-registry/registry.db") -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{/* A variable whose value is in a Secret: (list NAME reference). */}}
{{- define "skep-registry.secretVariable" -}}
- name: {{ index . 0 }}
  valueFrom: { secretKeyRef: { name: {{ (index . 1).secretName }}, key: {{ (index . 1).key }} } }
{{- end }}

{{- define "skep-registry.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "skep-registry.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "skep-registry.mounts" -}}
- { name: config, mountPath: /etc/skep-registry, readOnly: true }
- { name: tmp, mountPath: /tmp }
{{- if .Values.database.ca.configMapName }}
- { name: database-ca, mountPath: /etc/skep-registry-ca, readOnly: true }
{{- end }}
{{- range $index, $one := .Values.secretFiles }}
- { name: secret-{{ $index }}, mountPath: {{ $one.mountPath | quote }}, readOnly: true }
{{- end }}
{{- end }}

{{- define "skep-registry.volumes" -}}
- name: config
  configMap: { name: {{ include "skep-registry.name" . }} }
- name: tmp
  emptyDir: { sizeLimit: 1Gi }
{{- with .Values.database.ca.configMapName }}
- name: database-ca
  configMap: { name: {{ . }} }
{{- end }}
{{- range $index, $one := .Values.secretFiles }}
- name: secret-{{ $index }}
  secret: { secretName: {{ $one.secretName }}, defaultMode: 288 }
{{- end }}
{{- end }}
