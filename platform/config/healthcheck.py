"""Health check of the image: ``python -m config.healthcheck [port path]`` ends with 0 when a process of it answers 200."""

from __future__ import annotations

import http.client
import sys

from config import env


def probe_host() -> str:
    """Return a host name that the web server of this configuration answers to: probes from inside need one."""
    hosts: list[str] = env.get("GROUNDWORK_ALLOWED_HOSTS")
    first = hosts[0] if hosts else "localhost"
    return "localhost" if first == "*" else first.lstrip(".")


def main(port: int = 8000, path: str = "/healthz") -> int:
    """Return 0 when this machine answers 200 there (by default: the web server lives), else 1."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2.5)
    try:
        connection.request("GET", path, headers={"Host": probe_host()})
        return 0 if connection.getresponse().status == 200 else 1
    except (OSError, http.client.HTTPException):
        return 1
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]) if len(sys.argv) == 3 else main())
