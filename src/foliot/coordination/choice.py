"""Chooses the coordinator that the configuration names. Its library is loaded here, and only then."""

from __future__ import annotations

from foliot.clock import Clock
from foliot.config import Config
from foliot.coordination.base import Coordinator
from foliot.errors import ConfigurationError


def coordinator_of(config: Config, *, clock: Clock) -> Coordinator:
    """For any `coordination` but postgres."""
    settings = {
        "url": config.coordination_url,
        "prefix": config.coordination_prefix,
        "session_seconds": config.coordination_session_seconds,
    }
    if config.coordination == "etcd":
        from foliot.coordination.etcd import EtcdCoordinator

        return EtcdCoordinator(**settings, clock=clock)  # type: ignore[arg-type]
    try:
        from foliot.coordination.zookeeper import ZooKeeperCoordinator
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"coordination: zookeeper needs the Python package {error.name}; "
            "install it with: pip install 'foliot[zookeeper]'"
        ) from None
    return ZooKeeperCoordinator(**settings, clock=clock)  # type: ignore[arg-type]
