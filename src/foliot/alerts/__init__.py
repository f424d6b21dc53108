"""Alerts: rules that watch jobs, queues and the installation, and channels that tell people."""
