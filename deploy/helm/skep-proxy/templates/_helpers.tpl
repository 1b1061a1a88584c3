{{/* The proxy's objects; those of the server itself are called as the release is, or mcp- and its name. */}}
{{- define "skep-proxy.name" -}}
{{ .Release.Name | trunc 46 | trimSuffix "-" }}-proxy
{{- end }}

{{- define "skep-proxy.selector" -}}
app.kubernetes.io/name: skep-proxy
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "skep-proxy.labels" -}}
{{ include "skep-proxy.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "skep-proxy.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end }}

{{/* What values.schema.json cannot say. */}}
{{- define "skep-proxy.check" -}}
{{- $server := .Values.server -}}
{{- if or (and $server.image $server.url) (not (or $server.image $server.url)) -}}
{{- fail "server: set exactly one of server.image and server.url" -}}
{{- end -}}
{{- if and $server.url (eq $server.transport "stdio") -}}
{{- fail "server.transport: a server elsewhere speaks streamable-http or sse" -}}
{{- end -}}
{{- $replicas := int .Values.replicas -}}
{{- if and $server.image (or (gt $replicas 1) .Values.redis.address) -}}
{{- fail "replicas: a server of an image is its proxy's own, which has one replica and no redis; run the server by itself, and name it as server.url" -}}
{{- end -}}
{{- if and (eq $server.transport "sse") (or (gt $replicas 1) .Values.redis.address) -}}
{{- fail "server.transport: sessions of HTTP with SSE end with their stream; keep one replica, without redis" -}}
{{- end -}}
{{- if and (gt $replicas 1) (not (or .Values.redis.address .Values.modernClientsOnly)) -}}
{{- fail (printf "replicas: %d share the sessions of legacy clients in Redis: set redis.address, or modernClientsOnly where there are no such clients" $replicas) -}}
{{- end -}}
{{- if and .Values.redis.ca.configMapName .Values.config.skep_ca_bundle -}}
{{- fail "config.skep_ca_bundle: redis.ca stands for it; put all authorities into one" -}}
{{- end -}}
{{- range $key, $_ := .Values.config -}}
{{- if has $key (list "schema_version" "name" "image" "remote_url" "transport" "target_port" "host" "port" "allowed_origins" "cmd_args" "env_vars" "secrets" "permission_profile" "isolate_network" "runtime" "scaling_config") -}}
{{- fail (printf "config.%s: the chart sets it; use the other values" $key) -}}
{{- end -}}
{{- end -}}
{{- range .Values.secrets -}}
{{- if and .header $server.image }}{{ fail (printf "secrets: header %s is for a server elsewhere; give target" .header) }}{{ end -}}
{{- if and .target $server.url }}{{ fail (printf "secrets: target %s is for a server of an image; give header" .target) }}{{ end -}}
{{- end -}}
{{- end }}

{{/* The name of a secret in the run configuration; SKEP_SECRET_ and it is the variable that holds its value. */}}
{{- define "skep-proxy.secretName" -}}
{{ .target | default .header | upper | replace "-" "_" }}
{{- end }}

{{/* The run configuration. */}}
{{- define "skep-proxy.config" -}}
{{- include "skep-proxy.check" . -}}
{{- $server := .Values.server -}}
{{- $service := include "skep-proxy.name" . -}}
{{- $config := dict "schema_version" "v0.1.0" "name" .Release.Name "host" "0.0.0.0" "port" 8080 -}}
{{- $origins := list -}}
{{- range list $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) (printf "%s.%s.svc.cluster.local" $service .Release.Namespace) -}}
{{- $origins = append $origins (printf "http://%s:%d" . (int $.Values.service.port)) -}}
{{- end -}}
{{- $_ := set $config "allowed_origins" (concat $origins .Values.allowedOrigins) -}}
{{- if $server.image -}}
{{- $transport := $server.transport | default "stdio" -}}
{{- $config = merge $config (dict "image" $server.image "transport" $transport "cmd_args" $server.args "env_vars" $server.env "permission_profile" $server.permissionProfile "isolate_network" $server.isolateNetwork) -}}
{{- if ne $transport "stdio" }}{{ $_ := set $config "target_port" (int $server.targetPort) }}{{ end -}}
{{- $secrets := list -}}
{{- range .Values.secrets }}{{ $secrets = append $secrets (printf "%s,target=%s" (include "skep-proxy.secretName" .) .target) }}{{ end -}}
{{- if $secrets }}{{ $_ := set $config "secrets" $secrets }}{{ end -}}
{{- else -}}
{{- $config = merge $config (dict "remote_url" $server.url "transport" ($server.transport | default "streamable-http")) -}}
{{- $headers := dict -}}
{{- range .Values.secrets }}{{ $_ := set $headers .header (include "skep-proxy.secretName" .) }}{{ end -}}
{{- if $headers }}{{ $_ := set $config "header_forward" (dict "add_headers_from_secret" $headers) }}{{ end -}}
{{- end -}}
{{- with .Values.redis -}}
{{- if .address -}}
{{- $redis := dict "address" .address "key_prefix" (.keyPrefix | default (printf "skep:%s:%s:" $.Release.Namespace $.Release.Name)) -}}
{{- if .password.secretName }}{{ $_ := set $redis "password_file" (printf "/run/secrets/redis/%s" .password.key) }}{{ end -}}
{{- $_ := set $config "scaling_config" (dict "session_redis" $redis) -}}
{{- if .ca.configMapName }}{{ $_ := set $config "skep_ca_bundle" (printf "/etc/skep-redis/%s" .ca.key) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- merge $config .Values.config | toPrettyJson -}}
{{- end }}
