"""Exit statuses of the command, besides 0."""

#: A point, a claim or a crash check failed.
FAILED = 1
BAD_INPUT = 2
#: By Ctrl-C: 128 and the number of SIGINT, as shells have it.
INTERRUPTED = 130
