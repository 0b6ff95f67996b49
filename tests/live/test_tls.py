"""TLS on every port and to pools: real certificates, a real Envoy, curl and openssl."""

from __future__ import annotations

import io
import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evenly.errors import InputError
from evenly.live.envoy.process import find_envoy
from evenly.live.gateway.secrets import GatewaySecrets
from evenly.live.log import Log
from evenly.live.settings import read_settings
from evenly.live.tls import KeyPair, pair_of, read_authorities, read_pair, server_context, system_authorities
from tests.live.certificates import Authority, openssl, replaced
from tests.live.clients import Session
from tests.live.processes import PATIENCE, Process, eventually, free_port
from tests.live.rig import Gateway, Picker, PoolProcess
from tests.needs import needs


class Certificates(NamedTuple):
    """An authority that everything trusts, another one, and the certificates that tests share."""

    ours: Authority
    other: Authority
    server: KeyPair
    client: KeyPair


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    ours, other = (Authority(tmp_path_factory.mktemp("tls"), name) for name in ("ours", "other"))
    return Certificates(ours, other, ours.sign("first"), ours.sign("client"))


def curl(url: str, trusted: Path, *options: str) -> str:
    """Return the body and the HTTP version, separated by a space; the exit code if curl fails."""
    limits = ("--cacert", str(trusted), "--max-time", f"{PATIENCE:.0f}")
    command = [needs("curl"), "--silent", "--show-error", *limits]
    done = subprocess.run(
        [*command, "--write-out", " %{http_version}", *options, url], capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else f"curl: {done.returncode}"


def handshake(port: int, *options: str) -> str:
    """Return what openssl's client says about a handshake."""
    command = [needs("openssl"), "s_client", "-connect", f"127.0.0.1:{port}", "-servername", "localhost", *options]
    return subprocess.run(command, input="", capture_output=True, text=True, check=False, timeout=PATIENCE).stdout


def subject(port: int, trusted: Path) -> str:
    """Return the common name of the certificate that a port shows."""
    context = ssl.create_default_context(cafile=trusted)
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        shown: Any = connection.getpeercert()
    [name] = [value for ((kind, value),) in shown["subject"] if kind == "commonName"]
    return str(name)


def options_for(pair: KeyPair, prefix: str) -> list[str]:
    return [f"--{prefix}-cert", str(pair.cert), f"--{prefix}-key", str(pair.key)]


# --- a gateway with TLS everywhere -----------------------------------------------------------------------------


class Front(NamedTuple):
    """A gateway with TLS on both ports and to its pools, of which only `good` can serve. The files may change."""

    gateway: Gateway
    good: PoolProcess
    listener: KeyPair
    admin: KeyPair
    client: KeyPair
    certificates: Certificates

    @property
    def trusted(self) -> Path:
        return self.certificates.ours.cert

    @property
    def url(self) -> str:
        return f"https://localhost:{self.gateway.port}/"

    def states(self) -> list[tuple[str, int]]:
        answer = curl(f"https://localhost:{self.gateway.admin}/state", self.trusted)
        return [(pool["state"], pool["sessions"]) for pool in json.loads(answer.rpartition(" ")[0])["pools"]]

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = map(json.loads, self.gateway.output().splitlines())
        return [line for line in lines if line.get("event") == name and line["certificate"] == "listener"]


@contextmanager
def running_front(certificates: Certificates, folder: Path) -> Iterator[Front]:
    """Yield a gateway whose options are in a file. Of its six pools, five cannot work."""
    from tests.live.grpc_pool import GrpcPool, server_credentials

    ours, other, server, client = certificates
    files = {}
    for name, pair in (("tls", server), ("admin_tls", server), ("pool", client)):
        files[name] = KeyPair(folder / f"{name}.pem", folder / f"{name}.key")
        for to, source in zip(files[name].files, pair.files, strict=True):
            replaced(to, source)
    elsewhere, strange = ours.sign("elsewhere", "elsewhere.example"), other.sign("strange")
    kinds = (
        (*server.files, ours.cert),
        (*server.files, other.cert),  # wants a client certificate that we do not have
        elsewhere.files,  # has a certificate for another name
        strange.files,  # has one of an authority that we do not trust
        (),  # speaks no TLS
    )
    with ExitStack() as stack:
        pools = [stack.enter_context(PoolProcess(*tls)) for tls in kinds]
        grpc = stack.enter_context(GrpcPool(credentials=server_credentials(server)))  # speaks HTTP/2 only
        for pool in pools:
            pool.wait()
        values: dict[str, object] = {
            "pool": [f"https://localhost:{port}" for port in (*(pool.port for pool in pools), grpc.port)],
            "pool_ca": str(ours.cert),
            "alpha": "0.5",
        }
        for name, pair in files.items():
            values |= {f"{name}_cert": str(pair.cert), f"{name}_key": str(pair.key)}
        settings = folder / "evenly.toml"
        settings.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items()))
        gateway = stack.enter_context(Gateway("--config", str(settings)))
        gateway.wait()
        made = Front(gateway, pools[0], files["tls"], files["admin_tls"], files["pool"], certificates)
        eventually(made.states, lambda states: states == [("serving", 0), *[("failing", 0)] * 5])
        yield made


@pytest.fixture(scope="module")
def front(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """Yield a gateway that tests leave intact."""
    with running_front(certificates, tmp_path_factory.mktemp("gateway")) as made:
        yield made


def test_clients_speak_either_http_over_tls(front: Front) -> None:
    for option, version in (("--http1.1", "1.1"), ("--http2", "2")):
        assert curl(front.url, front.trusted, option) == f"{front.good.address} {version}"
        assert curl(front.url, front.trusted, option, "--data", "x") == f"{front.good.address} {version}"
    assert curl(front.url, front.certificates.other.cert) == "curl: 60"  # the certificate cannot be verified
    admin = f"https://localhost:{front.gateway.admin}"
    assert f"curl {admin}/state" in curl(f"{admin}/docs", front.trusted)
    for port in (front.gateway.port, front.gateway.admin):
        assert curl(f"http://localhost:{port}/state", front.trusted).startswith("curl: ")


def test_a_handshake_agrees_on_a_protocol_and_refuses_old_versions(front: Front) -> None:
    port = front.gateway.port
    for offered, taken in (("h2,http/1.1", "h2"), ("http/1.1", "http/1.1")):
        assert f"ALPN protocol: {taken}\n" in handshake(port, "-alpn", offered)
    assert "Verify return code: 0 (ok)" in handshake(port, "-CAfile", str(front.trusted))
    for each in (port, front.gateway.admin):
        assert "New, TLSv1.2, " in handshake(each, "-tls1_2")
        assert "New, (NONE), " in handshake(each, "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0")


@pytest.fixture
def changing(certificates: Certificates, tmp_path: Path) -> Iterator[Front]:
    """Yield a gateway whose certificates a test may replace."""
    with running_front(certificates, tmp_path) as made:
        yield made


@pytest.mark.long
def test_a_session_survives_new_certificates(changing: Front) -> None:
    """Files may be replaced, one by one, or overwritten. A pair that does not fit is not used, and logged."""
    port, pair, ours = changing.gateway.port, changing.listener, changing.certificates.ours
    session = Session(port, tls=ssl.create_default_context(cafile=changing.trusted)).wait()
    eventually(changing.states, lambda states: states[0] == ("serving", 1))
    second, third = ours.sign("second"), ours.sign("third")

    for old, new in zip(pair.files, second.files, strict=True):
        replaced(old, new)
    eventually(lambda: subject(port, changing.trusted), lambda name: name == "second")
    session.echo()

    pair.cert.write_bytes(third.cert.read_bytes())  # the key comes later
    [line] = eventually(lambda: changing.events("certificate not used"), bool)
    assert line["reason"] == (
        f"Cannot use the certificate {pair.cert} with the key {pair.key}: the key is not that of the certificate."
    )
    assert subject(port, changing.trusted) == "second"
    pair.key.write_bytes(third.key.read_bytes())
    eventually(lambda: subject(port, changing.trusted), lambda name: name == "third")
    assert len(eventually(lambda: changing.events("certificate read"), lambda lines: len(lines) > 1)) == 2

    pair.cert.write_text("-----BEGIN CERTIFICATE-----\n")
    eventually(lambda: changing.events("certificate not used"), lambda lines: len(lines) == 2)
    pair.key.unlink()
    eventually(lambda: changing.events("certificate not used"), lambda lines: len(lines) == 3)
    assert subject(port, changing.trusted) == "third"

    for to, source in zip(changing.admin.files, second.files, strict=True):
        replaced(to, source)
    eventually(lambda: subject(changing.gateway.admin, changing.trusted), lambda name: name == "second")
    session.echo()
    session.close()
    eventually(changing.states, lambda states: states[0] == ("serving", 0))

    # The second pool wants a client certificate of the other authority.
    for to, source in zip(changing.client.files, changing.certificates.other.sign("client").files, strict=True):
        replaced(to, source)
    eventually(changing.states, lambda states: states[1][0] != "failing")


def test_the_gateway_follows_authorities_and_keeps_its_copies(certificates: Certificates, tmp_path: Path) -> None:
    trusted, folder, lines = tmp_path / "ca.pem", tmp_path / "folder", io.StringIO()
    folder.mkdir()
    replaced(trusted, certificates.ours.cert)
    settings = read_settings(
        {"listen": "127.0.0.1:1", "pool": ["https://localhost:2"], "pool_ca": str(trusted)}, None
    )
    secrets = GatewaySecrets(settings, folder, {}, Log(lines))
    [copy] = folder.iterdir()

    def in_copy() -> str:
        [resource] = json.loads(copy.read_text())["resources"]
        return str(resource["validation_context"]["trusted_ca"]["inline_string"])

    assert in_copy() == certificates.ours.cert.read_text()
    replaced(trusted, certificates.other.cert)
    secrets.look()
    assert in_copy() == certificates.ours.cert.read_text()  # more files might be about to change
    secrets.look()
    assert in_copy() == certificates.other.cert.read_text()
    trusted.write_text("none")
    copy.unlink()
    for _ in range(3):
        secrets.look()
    assert in_copy() == certificates.other.cert.read_text()
    assert [json.loads(line)["event"] for line in lines.getvalue().splitlines()] == [
        "certificate read",
        "certificate not used",
    ]


@pytest.mark.full
def test_a_key_that_only_envoy_rejects_is_named(tmp_path: Path) -> None:
    pair = KeyPair(tmp_path / "cert", tmp_path / "key")
    openssl(
        *("req", "-x509", "-newkey", "ed448", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
        *("-keyout", pair.key, "-out", pair.cert),
    )
    command = [sys.executable, "-m", "evenly", "gateway", "--listen", "127.0.0.1:0", "--pool", "127.0.0.1:1"]
    command += [*options_for(pair, "tls"), "--alpha", "0.5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"evenly: Envoy cannot use the certificate {pair.cert}: the key must be RSA with " in done.stderr


# --- a picker with TLS, and an Envoy that trusts it ------------------------------------------------------------


def printed(*options: str) -> str:
    """Return what `evenly envoy-config` prints."""
    command = [sys.executable, "-m", "evenly", "envoy-config", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout


def test_an_envoy_speaks_tls_with_clients_picker_and_pools(certificates: Certificates, tmp_path: Path) -> None:
    ours, _, server, client = certificates
    with ExitStack() as stack:
        pool = stack.enter_context(PoolProcess(*server.files, ours.cert))
        own = options_for(server, "tls")
        picker = stack.enter_context(Picker("--pool", f"https://{pool.address}", "--alpha", "0.5", *own))
        pool.wait()
        picker.wait()
        assert subject(picker.port, ours.cert) == "first"
        port, admin = free_port(), free_port()
        config = tmp_path / "envoy.json"
        config.write_text(
            printed(
                *("--picker", f"127.0.0.1:{picker.port}", "--picker-ca", str(ours.cert), *own),
                *("--listen", f"127.0.0.1:{port}", "--envoy-admin", f"127.0.0.1:{admin}"),
                *("--pool-protocol", "https", "--pool-ca", str(ours.cert), "--pool-sni", "localhost"),
                *options_for(client, "pool"),
            )
        )
        options = ("--disable-hot-restart", "--concurrency", "1", "--log-level", "warning")
        envoy = stack.enter_context(Process(str(find_envoy()), "-c", str(config), *options))
        url = f"https://localhost:{port}/"
        eventually(lambda: curl(url, ours.cert), lambda answer: answer == f"{pool.address} 2")

        def counts() -> tuple[int, int]:
            state = picker.state()
            return state["pools"][0]["sessions"], state["unpicked_sessions"]

        with_tls = ssl.create_default_context(cafile=ours.cert)
        eventually(counts, lambda seen: seen == (0, 0))
        session = Session(port, tls=with_tls).wait()
        eventually(counts, lambda seen: seen == (1, 0))  # the picker placed it
        session.close()
        eventually(counts, lambda seen: seen == (0, 0))
        assert "deprecated" not in envoy.output()


# --- which certificates are usable -----------------------------------------------------------------------------


def test_unusable_certificates_are_named_in_one_sentence(certificates: Certificates, tmp_path: Path) -> None:
    ours, _, server, client = certificates
    text, encrypted, none = tmp_path / "text", tmp_path / "encrypted.key", tmp_path / "none"
    text.write_text("no certificate")
    openssl("ec", "-in", server.key, "-aes256", "-passout", "pass:secret", "-out", encrypted)
    for pair, reason in (
        (KeyPair(server.cert, client.key), ": the key is not that of the certificate."),
        (ours.sign("old", days=-1), ": certificate has expired."),
        (KeyPair(text, server.key), ": both must be in PEM."),
        (KeyPair(server.cert, text), ": both must be in PEM."),
        (KeyPair(server.cert, encrypted), ": the key is encrypted; decrypt it first."),
        (KeyPair(none, server.key), f"Cannot read {none}: no such file or directory."),
        (KeyPair(server.cert, tmp_path), f"Cannot read {tmp_path}: is a directory."),
        (KeyPair(Path("/dev/null"), server.key), "it is not a regular file."),
    ):
        for use in (read_pair, lambda pair: read_pair(pair, client=True), server_context):
            with pytest.raises(InputError) as error:
                use(pair)
            assert str(error.value).endswith(reason)
            assert "\n" not in str(error.value)
    assert read_pair(server).cert == server.cert.read_text()
    assert time.strptime(read_pair(client, client=True).expires, "%b %d %H:%M:%S %Y GMT")


def test_a_certificate_must_be_meant_for_its_side(tmp_path: Path) -> None:
    pair = KeyPair(tmp_path / "cert", tmp_path / "key")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=x", "-days", "2")
    files = ("-keyout", pair.key, "-out", pair.cert)
    openssl("req", "-x509", *key, "-addext", "extendedKeyUsage=clientAuth", *files)
    assert read_pair(pair, client=True).expires
    with pytest.raises(InputError, match=r": unsuitable certificate purpose\.$"):
        read_pair(pair)


def test_authorities(certificates: Certificates, tmp_path: Path) -> None:
    ours, _, server, _ = certificates
    assert read_authorities(ours.cert) == ours.cert.read_text()
    with pytest.raises(InputError, match=r"^Cannot use the CA file .*key: it has no certificate in PEM\.$"):
        read_authorities(server.key)
    assert system_authorities({"SSL_CERT_FILE": str(ours.cert)}) == ours.cert
    with pytest.raises(InputError, match="give --pool-ca FILE"):
        system_authorities({"SSL_CERT_FILE": str(tmp_path / "none")})


def test_certificate_and_key_come_together() -> None:
    assert pair_of(None, None) is None
    with pytest.raises(InputError, match=r"^Give pool-cert and pool-key together, or neither of them\.$"):
        pair_of(Path("x"), None, "pool")
