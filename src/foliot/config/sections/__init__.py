"""The settings by topic.

Each section extends the one before it, because msgspec structures have one base: database, api, jobs, workers,
execution, logs, statsd, brokers, coordination, archive, traces, channels, events. `foliot.config.settings.Config`
extends the last one.
"""
