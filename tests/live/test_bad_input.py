"""Bad input to the live commands: one sentence and exit code 2, before any process is started."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from evenly.cli.main import main
from tests.live.processes import free_port

TIMEOUT = 60.0  # seconds, for a command that imports, complains and ends
ADDRESS_SPACE = 2 * 10**9  # bytes; a command that reads a device without a limit needs more

PICKER = ("picker", "--listen", "127.0.0.1:0")
GATEWAY = ("gateway", "--listen", "127.0.0.1:0")
ENVOY_CONFIG = ("envoy-config", "--picker", "127.0.0.1:4000", "--listen", "127.0.0.1:8080")
POOL = ("--pool", "127.0.0.1:9")


@pytest.fixture(autouse=True)
def _no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a command that starts a process."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("A process was started.")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", fail)
    monkeypatch.setattr(subprocess, "Popen", fail)
    monkeypatch.delenv("EVENLY_ADMIN_TOKEN", raising=False)


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command that must reject its input; return what it complains about."""
    assert main(list(words)) == 2
    out, error = capsys.readouterr()
    assert not out
    assert error.startswith("evenly: ")
    assert error.endswith("\n")
    assert error.count("\n") == 1
    assert len(error) < 700
    return error.removeprefix("evenly: ").removesuffix("\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--slow-start", "x"), "slow-start must be a number from 0 to 86400, not 'x'."),
        (("--load-max", "1e309"), "load-max must be a positive number of at most 1000, not inf."),
        (
            ("--policy", "power-of-d", "--sample-size", "2.5"),
            "sample-size must be a whole number from 1 to 1000, not '2.5'.",
        ),
        (("--admin", "256.1.1.1:80"), "'256.1.1.1:80' is not a valid IPv4 address"),
        (
            ("--listen", ":8080"),
            "':8080' has no host: write 127.0.0.1:8080 for this machine only, or 0.0.0.0:8080 to listen on all",
        ),
        (("--pool", ":19001"), "':19001' has no host: write 127.0.0.1:19001 for this machine."),
        (("--pool", "h\u00f6st:80"), "xn--"),
        (("--config", ""), "--config must name a file, not ''."),
        (("--config", "/dev/zero"), "Cannot read /dev/zero more than once: it is not a regular file."),
        (("--config", "/"), "Cannot read /: is a directory."),
        (("--admin-token-file", "/"), "Cannot read /: is a directory."),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_bad_options(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str) -> None:
    assert sentence in complaint(capsys, *PICKER, *POOL, *words)


def test_bad_options_of_the_gateway_alone(capsys: pytest.CaptureFixture[str]) -> None:
    said = complaint(capsys, *GATEWAY, *POOL, "--drain-timeout", "1e9")
    assert said == "--drain-timeout must be a number from 0 to 86400, not 1000000000.0."
    assert "health-path must start with /" in complaint(capsys, *GATEWAY, *POOL, "--health-path", "up")


def test_what_only_the_network_knows_is_checked_before_the_children_start(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = complaint(capsys, *GATEWAY, "--pool", "missing.invalid:80")
    assert said.startswith("Cannot resolve the host of missing.invalid:80: ")
    said = complaint(capsys, *GATEWAY, "--pool", "127.0.0.1:8", "--pool", "localhost:8")
    assert said == "Pools 127.0.0.1:8 and localhost:8 are the same server."
    said = complaint(capsys, "gateway", "--listen", "0.0.0.0:8", "--pool", "localhost:8")
    assert said == "Pool 127.0.0.1:8 is the address that Envoy listens on: requests would loop."
    port = free_port()
    said = complaint(capsys, "gateway", "--listen", f"localhost:{port}", "--admin", f"127.0.0.1:{port}", *POOL)
    assert said == f"listen and admin must have different ports, not 127.0.0.1:{port} and 127.0.0.1:{port}."
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        for options in (("--listen", f"127.0.0.1:{port}"), (*GATEWAY[1:], "--admin", f"localhost:{port}")):
            said = complaint(capsys, "gateway", *options, *POOL)
            assert said == f"Cannot listen on 127.0.0.1:{port}: address already in use."


def test_bad_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "token"
    for start in (PICKER, GATEWAY):
        for content, sentence in [
            (b"short", "must be 16 to 4096 printable ASCII characters without spaces"),
            (b"line\nbreak-long-enough", "must be 16 to 4096 printable ASCII characters without spaces"),
            (b"not-ascii-\xc3\xa4-long-enough", "printable ASCII"),
            (b"not-utf-8-\xff-long-enough", "not UTF-8"),
        ]:
            file.write_bytes(content)
            assert sentence in complaint(capsys, *start, *POOL, "--admin-token-file", str(file))


def test_a_bad_token_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start: tuple[str, ...]
    for start in ((*PICKER, *POOL), (*GATEWAY, *POOL), ("demo",)):
        for token in ["short", "odd-byte-\udcff-long-enough"]:
            monkeypatch.setenv("EVENLY_ADMIN_TOKEN", token)
            said = complaint(capsys, *start)
            assert said.startswith(
                "The admin token from EVENLY_ADMIN_TOKEN must be 16 to 4096 printable ASCII characters"
            )
            assert token not in said


def test_a_gateway_rejects_a_pipe_with_a_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its picker could not read the pipe again after a restart."""
    os.mkfifo(tmp_path / "pipe")
    said = complaint(capsys, *GATEWAY, *POOL, "--admin-token-file", str(tmp_path / "pipe"))
    assert said == f"Cannot read {tmp_path / 'pipe'} more than once: it is not a regular file."


def test_bad_state_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, reason in [
        ("/dev/full", "it is not a regular file"),
        ("/dev/null", "it is not a regular file"),
        (str(tmp_path / "pipe"), "it is not a regular file"),
        (str(tmp_path), "it is a directory"),
        ("/proc/state.json", "/proc"),
        (str(tmp_path / "nothing" / "state.json"), "there is no directory"),
        ("x" * 300, "file name too long"),
    ]:
        said = complaint(capsys, *PICKER, *POOL, "--state-file", path)
        assert said.startswith("Cannot write ")
        assert reason in said
    (tmp_path / "state.json").write_text("{}")
    said = complaint(capsys, *PICKER, *POOL, "--state-file", str(tmp_path / "state.json"))
    assert said.endswith("is not a file that a picker wrote; remove it or name another.")


@pytest.mark.parametrize(("command", "option"), [("picker", "--config"), ("gateway", "--admin-token-file")])
def test_a_device_is_not_read_without_a_limit(monkeypatch: pytest.MonkeyPatch, command: str, option: str) -> None:
    """In its own process, whose memory is limited in case it is read after all."""
    monkeypatch.undo()  # this test itself starts a process
    done = subprocess.run(
        [sys.executable, "-m", "evenly", command, "--listen", "127.0.0.1:0", *POOL, option, "/dev/zero"],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),
    )
    assert done.returncode == 2
    assert done.stderr.startswith("evenly: Cannot read /dev/zero")
    assert done.stderr.count("\n") == 1


def test_bad_options_of_envoy_config(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[tuple[str, ...], str]] = [
        (("--picker", "127.0.0.1:0"), "The port of the picker must be from 1 to 65535, not 0."),
        (("--envoy-admin", "0.0.0.0:8080"), "listen and envoy-admin must have different ports"),
        (("--pool", "127.0.0.1:8080"), "requests would loop"),
        (("--health-path", "/\u00e4"), "health-path must start with /"),
    ]
    for words, sentence in rows:
        assert sentence in complaint(capsys, *ENVOY_CONFIG, *words)


def test_bad_options_of_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[tuple[str, ...], str]] = [
        (("--seed=-5",), "--seed must be a whole number from 0 to 18446744073709551615, not -5."),
        (("--seconds", "5"), "--seconds must be a number from 6 to 3600, not 5.0."),
        (("--seconds", "long"), "--seconds must be a number from 6 to 3600, not 'long'."),
    ]
    for words, sentence in rows:
        assert complaint(capsys, "demo", *words) == sentence


TLS_POOL = ("--pool", "https://localhost:9")


def test_tls_and_protocols_of_pools(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[tuple[str, ...], str]] = [
        (("--pool", "h2://127.0.0.1:8", *POOL), "All pools must speak one protocol, not h2 and http."),
        (
            ("--pool", "ftp://a:1"),
            "The scheme of a pool must be one of http, https, h2, h2s, dns or srv, or a pair such as dns+h2, not "
            "'ftp'.",
        ),
        ((*POOL, "--tls-cert", "a"), "Give tls-cert and tls-key together, or neither of them."),
        ((*POOL, "--pool-ca", "a"), "--pool-ca is for pools with https:// or h2s://, not http://."),
        ((*TLS_POOL, "--health-grpc", ""), "--health-grpc is for pools with h2:// or h2s://, not https://."),
        (
            ("--pool", "h2://a:1", "--health-grpc", "", "--health-path", "/"),
            "Give health-grpc or health-path, not both.",
        ),
        (
            (*TLS_POOL, "--pool-sni", "127.0.0.1"),
            "--pool-sni must be a host name such as pool.example.com, not '127.0.0.1'.",
        ),
        (
            ("--pool", "h2s://127.0.0.1:9", "--pool-ca", "a"),
            "Pool h2s://127.0.0.1:9 needs pool-sni, the name in its certificate, because its address has none.",
        ),
    ]
    for words, sentence in rows:
        for start in (GATEWAY, ENVOY_CONFIG):
            assert complaint(capsys, *start, *words) == sentence


def test_certificates_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file names them too, and a picker has two ports that need them."""
    none = tmp_path / "none"
    unreadable = f"Cannot read {none}: no such file or directory."
    for prefix in ("tls", "admin-tls"):
        pair = (f"--{prefix}-cert", str(none), f"--{prefix}-key", str(none))
        for start in (GATEWAY, PICKER):
            assert complaint(capsys, *start, *POOL, *pair) == unreadable
        settings = tmp_path / "evenly.toml"
        name = prefix.replace("-", "_")
        settings.write_text(f'pool = ["127.0.0.1:9"]\n{name}_cert = "{none}"\n{name}_key = "{none}"\n')
        assert complaint(capsys, *GATEWAY, "--config", str(settings)) == unreadable
        settings.write_text(f'pool = ["127.0.0.1:9"]\n{name}_cert = 7\n')
        assert complaint(capsys, *GATEWAY, "--config", str(settings)) == (
            f"{prefix}-cert must be the name of a file, not 7."
        )
    assert complaint(capsys, *GATEWAY, *TLS_POOL, "--pool-ca", str(none)) == unreadable
    assert complaint(capsys, *GATEWAY, *TLS_POOL, "--pool-cert", str(none), "--pool-key", str(none)) == unreadable


def test_what_only_envoy_config_rejects(capsys: pytest.CaptureFixture[str]) -> None:
    """The files are on another machine, so they are not read."""
    for words, sentence in (
        (TLS_POOL, "Pools with https:// need --pool-ca, the authorities that Envoy must trust."),
        (
            (*POOL, "--pool-protocol", "http"),
            "Give pool-protocol only without --pool; with it, write the scheme there.",
        ),
        (("--pool-protocol", "H2"), "--pool-protocol must be one of http, https, h2, h2s, not 'H2'."),
    ):
        assert complaint(capsys, *ENVOY_CONFIG, *words) == sentence
    assert main([*ENVOY_CONFIG, *TLS_POOL, "--pool-ca", "/none", "--picker-ca", "/none"]) == 0
