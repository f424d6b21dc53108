"""The rules of the settings of coordination, and the parts of `coordination_url`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from foliot.config.urls import HOST

if TYPE_CHECKING:
    from foliot.config.settings import Config

FORMS = {
    "etcd": (("http", "https"), "http://user:password@one:2379,two:2379"),
    "zookeeper": (("zookeeper",), "zookeeper://user:password@one:2181,two:2181"),
}


@dataclass(frozen=True, slots=True)
class Place:
    scheme: str
    hosts: tuple[str, ...]
    """Each with its port, if it has one."""
    user: str
    password: str
    path: str


def place_of(url: str) -> Place:
    """The parts of a URL that may name several hosts. Raises `ValueError`."""
    parts = urlsplit(url)
    credentials, _, hosts = parts.netloc.rpartition("@")
    if parts.query or parts.fragment or not all(host and HOST.fullmatch(host) for host in hosts.split(",")):
        raise ValueError("not a list of hosts")
    user, _, password = credentials.partition(":")
    return Place(parts.scheme, tuple(hosts.split(",")), unquote(user), unquote(password), parts.path.rstrip("/"))


def check_coordination(config: Config) -> None:
    # The URL is not quoted: it may contain a password.
    kind, url = config.coordination, config.coordination_url
    if kind == "postgres":
        if url:
            raise ValueError("coordination_url is given, but coordination is postgres; set it to etcd or zookeeper")
        if config.worker_liveness == "coordinator":
            raise ValueError(
                "worker_liveness is coordinator, but coordination is postgres; set coordination to etcd or zookeeper, "
                "and coordination_url"
            )
        return
    schemes, example = FORMS[kind]
    try:
        place = place_of(url)
        is_good = place.scheme in schemes and (kind == "zookeeper" or not place.path)
    except ValueError:
        is_good = False
    if not is_good:
        raise ValueError(
            f"coordination_url must look like {example} for coordination = {kind}; "
            "in a password write %40 for @ and %2F for /"
        )
