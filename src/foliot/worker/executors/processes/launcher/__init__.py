"""The small program between a worker and its commands: starts a command, terminates it, reports how it ended, and kills
its process tree.

It exists because a worker must not fork: a worker has threads, and code between fork and exec can block on a lock that
one of them holds. This program has no threads. It serves one command at a time, and takes the next when no process of
the previous one is left, so that no command waits for an interpreter to start. Most commands are spawned, which copies
no memory and takes half the time of a fork. Only a command with limits to set or a cgroup to enter needs a fork. The
program imports as little as possible (`_signal` instead of `signal`, for instance, and nothing of Foliot), because
there are many launchers and forking a small process is cheap. `server.py` is its entry point.

For a sandboxed command, bubblewrap makes a sandbox that holds only an idle shell, and a fork of the launcher enters the
shell's namespaces from outside. So no process in the sandbox has more privileges than the command, and the kernel
itself reports how the command ended: bubblewrap reports 137 both for a SIGKILL and for `exit 137`.

The launcher gets one descriptor, a SEQPACKET socket. To start a command, the worker sends `run` with descriptors: PLAN,
OUTPUT, and those that PLAN names, in its order. PLAN holds `key=value` entries, each ended by NUL; `argv`,
`environment`, `descriptor` and `wrapper` (the words of the bubblewrap command) repeat. The launcher writes the number
of the process into the first bytes of PLAN, for a worker whose launcher is killed. Until the number is known they hold
0, and the mark in the command's environment identifies it. Then `terminate` sends SIGTERM, and `kill` ends the attempt,
as does closing the socket, also by the worker's death. The launcher answers with lines: `exit CODE`, `signal NUMBER`,
`refused WHY` or `exceeded memory`, then `cleared` once no process of the command is left.
"""
