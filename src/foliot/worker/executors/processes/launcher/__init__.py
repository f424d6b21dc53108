"""The small program between a worker and its commands: starts one, passes on the request to end, tells how it ended,
takes its tree along.

It exists because a worker must not fork: a worker has threads, and code between fork and exec can hang on a lock that
one of them holds. This program has no thread, so it may. It serves one command at a time, and the next one when nothing
is left of that, so that none waits for an interpreter to start. For most it need not even fork: they are spawned, which
copies none of our memory and takes half the time. A fork is for what has limits to set, or a cgroup to enter, before it
may begin. It imports next to nothing (`_signal` without the names that `signal` gives to numbers, say), because there
are many of it, and forks of it are cheap as long as it is small: not even Foliot, for which it is no part of that but a
package of its own. `serving.py` is where it begins.

A command in a sandbox waits for bubblewrap, which makes one with a shell in it that does nothing but be there. What was
forked enters the namespaces of that shell from outside. So nobody in a sandbox has more rights than the command, and
how a command ended is asked of the kernel: bubblewrap tells 137 both for a SIGKILL and for `exit 137`.

It is given one descriptor, a socket that keeps messages apart. For a command the worker sends `run`, with descriptors:
PLAN, OUTPUT, and those that PLAN names, in its order. PLAN holds what to do, as `key=value` texts with a NUL after each
(`argv`, `environment`, `descriptor` come once for each, and so do the words of `wrapper`, which makes the sandbox); its
first bytes get the number of the process, for a worker whose launcher was killed (0 until it is known: then there is a
mark in the command's environment to know it by). Then `ask` asks the command to end, and `kill` means that the attempt
is over. The socket's end does too, also by the worker's death. The worker is told `exit CODE`, `signal NUMBER`,
`refused WHY` or `exceeded memory`, and `cleared` once nothing is left of the command: a line each.
"""
