"""The configuration: `Config` has every setting, `load` reads them. Secrets may be in files."""

from foliot.config.loading import load, setting_names
from foliot.config.secrets import forget_secrets, from_environment, hidden_paths, secret_in
from foliot.config.settings import (
    BUILT_IN_TASKS,
    GIVEN_TO_COMMANDS,
    PREFIX,
    SECRETS,
    Config,
    NamespaceName,
    Network,
    data_home,
    did_you_mean,
    networks_of,
)
from foliot.config.urls import without_password

__all__ = [
    "BUILT_IN_TASKS",
    "GIVEN_TO_COMMANDS",
    "PREFIX",
    "SECRETS",
    "Config",
    "NamespaceName",
    "Network",
    "data_home",
    "did_you_mean",
    "forget_secrets",
    "from_environment",
    "hidden_paths",
    "load",
    "networks_of",
    "secret_in",
    "setting_names",
    "without_password",
]
