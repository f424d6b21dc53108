"""Django's description of the application, which has no models."""

from django.apps import AppConfig


class FoliotConfig(AppConfig):
    name = "foliot.integrations.django"
    label = "foliot"
    verbose_name = "Foliot"
