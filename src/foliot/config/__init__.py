"""The configuration: `Config` has every setting, `load` reads them. Secrets may be in files."""

from foliot.config.archive_rules import Bucket, bucket_of
from foliot.config.coordination_rules import Place, place_of
from foliot.config.loading import SOURCES, load, setting_names, sources_of
from foliot.config.masking import SECRETS, presentable, shown, without_password
from foliot.config.networks import Network, host_and_port, networks_of
from foliot.config.secrets import forget_secrets, from_environment, hidden_paths, secret_in
from foliot.config.sections.database import data_home
from foliot.config.sections.types import NamespaceName
from foliot.config.settings import (
    BUILT_IN_TASKS,
    GIVEN_TO_COMMANDS,
    PREFIX,
    Config,
    did_you_mean,
)
from foliot.config.urls import broker_kind_of
from foliot.config.worker_range import worker_range

__all__ = [
    "BUILT_IN_TASKS",
    "GIVEN_TO_COMMANDS",
    "PREFIX",
    "SECRETS",
    "SOURCES",
    "Bucket",
    "Config",
    "NamespaceName",
    "Network",
    "Place",
    "broker_kind_of",
    "bucket_of",
    "data_home",
    "did_you_mean",
    "forget_secrets",
    "from_environment",
    "hidden_paths",
    "host_and_port",
    "load",
    "networks_of",
    "place_of",
    "presentable",
    "secret_in",
    "setting_names",
    "shown",
    "sources_of",
    "without_password",
    "worker_range",
]
