"""Every attack: importing this package fills torture.registry.ATTACKS."""

from torture.attacks import (bodies, connections, disconnects, doors, fairness, fields, framing, limits,  # noqa: F401
                             overload, sessions, states, stopping, stores, templates)
