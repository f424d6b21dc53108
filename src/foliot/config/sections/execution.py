"""Settings of what workers execute."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from foliot.config.sections.workers import WorkersSettings


class ExecutionSettings(WorkersSettings, frozen=True, kw_only=True):
    disabled_tasks: Annotated[
        str,
        Meta(
            description="Built-in tasks that this worker does not execute, separated by commas: "
            "http, map, shell, simulate, wait, workflow."
        ),
    ] = ""
    containment: Annotated[
        Literal["auto", "bubblewrap", "cgroup", "launcher"],
        Meta(description="How the processes of a command are contained, so that all end with it. auto: the strongest."),
    ] = "auto"
    shell_environment: Annotated[
        str,
        Meta(
            description="Names of the worker's environment variables that commands inherit besides PATH, HOME "
            "and the like, separated by commas."
        ),
    ] = ""
    sandbox: Annotated[
        Literal["none", "process", "bubblewrap"],
        Meta(
            description="Sandbox of commands: none, process (resource limits) or bubblewrap (namespaces too). "
            "A command may only choose a stricter one."
        ),
    ] = "none"
    sandbox_memory_mb: Annotated[
        int,
        Meta(
            ge=0,
            le=1_048_576,
            description="Memory limit of all processes of a command, and the most it may request. 0: no limit.",
        ),
    ] = 0
    sandbox_cpu_seconds: Annotated[
        int, Meta(ge=0, le=31_536_000, description="CPU time limit of a command, likewise.")
    ] = 0
    sandbox_file_size_mb: Annotated[
        int, Meta(ge=0, le=1_048_576, description="Size limit of a file that a command writes, likewise.")
    ] = 0
    sandbox_processes: Annotated[
        int,
        Meta(
            ge=0, le=1_000_000, description="Limit of a command's processes, likewise; without cgroups, of its user's."
        ),
    ] = 0
    sandbox_network: Annotated[
        bool, Meta(description="Whether a command in a bubblewrap sandbox may use the network.")
    ] = True
    http_allow_private: Annotated[
        bool,
        Meta(
            description="Whether the task `http` and alert channels may connect to private, loopback, link-local and "
            "metadata addresses."
        ),
    ] = False
    http_allow_hosts: Annotated[
        str,
        Meta(
            description="Hosts that the task `http` and alert channels may connect to at any address, separated by "
            "commas."
        ),
    ] = ""
    http_ca_file: Annotated[
        str,
        Meta(
            description="PEM file of certificate authorities that the task `http` and alert channels trust besides the "
            "public ones."
        ),
    ] = ""
    wait_for_file_directories: Annotated[
        str, Meta(description="Directories of the task `wait_for_file`, separated by commas. Empty: none.")
    ] = ""
    wait_for_row_url: Annotated[
        str, Meta(description="PostgreSQL URL that `wait_for_row` queries, of a role that may only read. Empty: none.")
    ] = ""
    wait_for_row_url_file: Annotated[str, Meta(description="File that contains `wait_for_row_url`.")] = ""
    http_body_max_bytes: Annotated[
        int, Meta(ge=0, le=67_108_864, description="Most bytes kept of a response body.")
    ] = 65_536
