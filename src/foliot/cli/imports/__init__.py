"""Reads the schedules of other schedulers: crontabs, Celery beat and Airflow."""
