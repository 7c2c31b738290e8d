"""The numbers that others rely on."""

from companion.web import limits


def test_limits_of_the_contract() -> None:
    """64 KiB for everything, 32 MiB for hooks."""
    assert (limits.BODY_BYTES, limits.HOOK_BODY_BYTES) == (65_536, 33_554_432)


def test_hooks_always_find_a_place() -> None:
    """Streams cannot take all connections, and large bodies cannot take all memory."""
    usual = limits.Limits()
    assert usual.streams < usual.connections
    assert usual.large_bodies * limits.HOOK_BODY_BYTES <= 128 * limits.MIB
    assert usual.drain_bytes > limits.HOOK_BODY_BYTES


def test_idle_connections_outlive_the_clients_own_patience() -> None:
    """Claude Code's HTTP client gives an idle connection up after 4 seconds."""
    assert limits.Limits().idle_s > 4
