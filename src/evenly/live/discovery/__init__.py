"""Pools found by DNS: `--pool dns://NAME:PORT` and `--pool srv://NAME`."""
