"""Logs of sessions: read the ones of other programs, write our own."""

from evenly.logs.read import read_log
from evenly.logs.session_log import BadLine, SessionLog

__all__ = ["BadLine", "SessionLog", "read_log"]
