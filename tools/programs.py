"""The programs that tests and guides use besides Python, and the Debian packages that have them.

python -m tools.programs    install the packages that are missing (`make tools`)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

PACKAGES = {
    "chromium": "chromium",
    "curl": "curl",
    "docker-compose": "docker-compose",
    "g++": "g++",
    "haproxy": "haproxy",
    "nginx": "nginx",
    "openssl": "openssl",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "redis-server": "redis-server",
    "systemd-analyze": "systemd",
    "unbound": "unbound",
    "unbound-control": "unbound",
}
_APT = ("apt-get", "-qq", "-o", "Dpkg::Use-Pty=0")


def find(program: str) -> str | None:
    """Return the path of a program of the table, or None. Debian's daemons are outside an ordinary user's path."""
    assert program in PACKAGES, f"tools/programs.py must list {program}"
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


def install() -> int:
    """Install what is missing, or print the command for root. Return the exit code."""
    missing = sorted({package for program, package in PACKAGES.items() if find(program) is None})
    if not missing:
        return 0
    command = [*_APT, "install", "-y", "--no-install-recommends", *missing]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"These Debian packages are missing: {' '.join(missing)}. Install them as root.", file=sys.stderr)
        return 1
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([*_APT, "update"], check=True, env=environment)
    return subprocess.run(command, check=False, env=environment).returncode


if __name__ == "__main__":
    sys.exit(install())
