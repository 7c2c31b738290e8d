"""Every number that bounds what a client can cost us, with its reason."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB

# The contract's limit for everything but hooks; inclusive.
BODY_BYTES = 64 * KIB
# A Write's PostToolUse carries its file three times, so 10 MiB files must pass.
HOOK_BODY_BYTES = 32 * MIB
# Only so many bodies above this size are in memory at the same time (see Limits.large_bodies).
LARGE_BODY_BYTES = 1 * MIB

# A board's path may have 4,096 bytes, each sent as three characters.
REQUEST_LINE_BYTES = 32 * KIB
HEAD_BYTES = 64 * KIB
HEADERS = 100


@dataclass(frozen=True)
class Limits:
    """Times and counts of one server. Tests shorten the times."""

    connections: int = 256
    """Served at the same time, a thread each; more wait in the kernel's backlog."""
    streams: int = 128
    """Open event streams: half of the connections always stay free for hooks."""
    large_bodies: int = 4
    """Bodies above ``LARGE_BODY_BYTES`` read at the same time: 128 MiB at most."""
    idle_s: float = 15.0
    """A connection without a request. Longer than the 4 s after which Claude Code's HTTP client
    gives an idle connection up, so that we never close one that it is about to use."""
    head_s: float = 10.0
    """From a request's first byte to the end of its head."""
    body_s: float = 30.0
    """From the end of the head to the end of the body."""
    send_s: float = 10.0
    """One write. A reader that takes nothing for so long is cut off."""
    heartbeat_s: float = 15.0
    """Between two signs of life on an event stream."""
    linger_s: float = 1.0
    """After an early answer, how long we still read so that the answer is not lost to a reset."""
    stop_s: float = 1.0
    """How long requests under way may still take when the server stops."""
    drain_bytes: int = 256 * MIB
    """How much of an oversized body is read before the refusal; a longer one is cut off after it."""
