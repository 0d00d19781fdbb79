{{- define "recollect.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "recollect.chroma" -}}
{{ .Values.chroma.name | default (printf "%s-chroma" .Release.Name) }}
{{- end }}

{{- define "recollect.postgres" -}}
{{ .Values.postgres.name | default (printf "%s-postgres" .Release.Name) }}
{{- end }}

{{- define "recollect.chromaUrl" -}}
{{- if .Values.chroma.enabled -}}
http://{{ include "recollect.chroma" . }}:{{ .Values.chroma.port }}
{{- else -}}
{{ required "chroma.url: name the Chroma server, as chroma.enabled is false" .Values.chroma.url }}
{{- end -}}
{{- end }}

{{/* What a container may do: nothing beyond its own process. */}}
{{- define "recollect.bare" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Who the processes of a pod are, by a number. */}}
{{- define "recollect.user" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* What every pod of Recollect mounts. */}}
{{- define "recollect.mounts" -}}
- {name: home, mountPath: /var/lib/recollect}
- {name: tmp, mountPath: /tmp}
- {name: secrets, mountPath: /run/secrets/recollect, readOnly: true}
{{- end }}

{{- define "recollect.volumes" -}}
- {name: home, emptyDir: {sizeLimit: 1Gi}}
- {name: tmp, emptyDir: {sizeLimit: 256Mi}}
- name: secrets
  secret:
    secretName: {{ .Values.secret.name }}
    defaultMode: 0440
{{- end }}

{{/* The addresses that are reached from outside: all but /metrics. */}}
{{- define "recollect.paths" -}}
{{ list (dict "type" "Prefix" "path" "/v1") (dict "type" "Prefix" "path" "/mcp") (dict "type" "Prefix" "path" "/page") (dict "type" "Prefix" "path" "/.well-known") (dict "type" "Exact" "path" "/openapi.json") (dict "type" "Exact" "path" "/healthz") (dict "type" "Exact" "path" "/readyz") | toJson }}
{{- end }}
