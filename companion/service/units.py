"""The two systemd units: their names, their text, and what enables them."""

from typing import Dict

from companion.service import unitfile
from companion.service.plan import Plan

SERVICE = "mdello-companion.service"
SOCKET = "mdello-companion.socket"
LINKS = (("default.target.wants", SERVICE), ("sockets.target.wants", SOCKET))
"""(folder, unit): what enables a unit is a link to it there, as ``systemctl enable`` makes it."""

MARK = "# Written by mdello.pyz install service."
"""How a unit of ours begins."""
_HEAD = f"""\
{MARK} The next one writes it anew;
# what you want to be different belongs into a folder beside it, {{name}}.d
"""

# A companion that cannot start (its file is gone) is tried again, but not for ever: a port that nobody
# listens at is refused at once, while a socket that nobody empties makes every hook wait for its
# whole limit. One that was killed must be back before a hook's limit of a second is over.
_SERVICE = """
[Unit]
Description=mdello companion: which agent session works on which card
Requires={socket}
After={socket}
StartLimitIntervalSec=60
StartLimitBurst=10

[Service]
ExecStart={command}
{environment}
Restart=on-failure
RestartSec=200ms
KillMode=mixed
TimeoutStopSec=15

[Install]
WantedBy=default.target
Also={socket}
"""

# FreeBind: a machine on which IPv6 is switched off still gets its 127.0.0.1; without it the whole
# unit would fail. Where the kernel has no IPv6 at all, systemd leaves the line out by itself.
_SOCKET = """
[Unit]
Description=mdello companion: its port

[Socket]
ListenStream=127.0.0.1:{port}
ListenStream=[::1]:{port}
BindIPv6Only=ipv6-only
FreeBind=yes

[Install]
WantedBy=sockets.target
"""


def texts(plan: Plan) -> Dict[str, str]:
    """Name to text. AdapterError for a path that systemd cannot take."""
    command = unitfile.command((plan.interpreter, plan.program, "serve", "--log-files"))
    environment = [f"Environment={unitfile.assignment(*each)}" for each in plan.environment]
    service = _SERVICE.format(command=command, environment="\n".join(environment), socket=SOCKET)
    return {
        SERVICE: _HEAD.format(name=SERVICE) + service,
        SOCKET: _HEAD.format(name=SOCKET) + _SOCKET.format(port=plan.port),
    }
