{{- define "foliot.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "foliot.labels" -}}
app.kubernetes.io/name: foliot
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "foliot.metadata" -}}
labels:
  {{- include "foliot.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "foliot.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What every pod has: no rights, and a file system that it can't write. */}}
{{- define "foliot.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: temporary
    emptyDir: {}
  - name: database
    secret:
      secretName: {{ .Values.database.existingSecret }}
      defaultMode: 0440
{{- end }}

{{- define "foliot.container" -}}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: temporary, mountPath: /tmp}
  - {name: database, mountPath: /run/secrets/foliot, readOnly: true}
{{- end }}

{{- define "foliot.environment" -}}
- name: FOLIOT_DATABASE_URL_FILE
  value: /run/secrets/foliot/{{ .Values.database.key }}
{{- with .Values.database.directKey }}
- name: FOLIOT_DATABASE_DIRECT_URL_FILE
  value: /run/secrets/foliot/{{ . }}
{{- end }}
- name: FOLIOT_LOG_FORMAT
  value: json
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* Spreads the pods of a part over the nodes. */}}
{{- define "foliot.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "foliot.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
{{- end }}
