"""TLS in Envoy's config: on the listener, to the pools, and to the picker.

`bootstrap.py` lists what must not change, and why.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenly.live.addresses import Address, is_ip
from evenly.live.tls import KeyPair, Pem

LISTENER, POOLS, AUTHORITIES = "listener", "pools", "pool-authorities"  # names of secrets
_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3"
_HANDSHAKE_TIMEOUT = "10s"
_VERSIONS = {"tls_minimum_protocol_version": "TLSv1_2", "tls_maximum_protocol_version": "TLSv1_3"}
_ALPN = {"https": "http/1.1", "h2s": "h2"}  # by the protocol of pools

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Secrets:
    """Where Envoy finds certificates: in their own files, or in the files of a folder with one secret each (SDS).

    Envoy reads their own files when it starts. It follows the files of the folder if they are replaced atomically.
    """

    folder: Path | None = None

    def file(self, name: str) -> Path:
        """Return the file of a secret."""
        assert self.folder is not None
        return self.folder / f"{name}.json"

    def certificate(self, name: str, pair: KeyPair | None) -> Json:
        """Describe a certificate to show, or none."""
        if pair is None:
            return {}
        if self.folder is not None:
            return {"tls_certificate_sds_secret_configs": [self._secret(name)]}
        sources = {"certificate_chain": _file(pair.cert), "private_key": _file(pair.key)}
        return {"tls_certificates": [sources]}

    def authorities(self, name: str, path: Path, checks: Json) -> Json:
        """Describe the authorities to trust, and further checks of the certificates that they signed."""
        if self.folder is None:
            return {"validation_context": {"trusted_ca": _file(path), **checks}}
        secret = {"validation_context_sds_secret_config": self._secret(name)}
        return {"combined_validation_context": {"default_validation_context": checks, **secret}}

    def _secret(self, name: str) -> Json:
        source = {"resource_api_version": "V3", "path_config_source": {"path": str(self.file(name))}}
        return {"name": name, "sds_config": source}


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolTls:
    """TLS to pools: the authorities to trust, our certificate for mutual TLS, and the name in their certificates.

    Without `sni`, that is the name in the address of each pool.
    """

    authorities: Path
    pair: KeyPair | None = None
    sni: str | None = None


def listener_tls(pair: KeyPair, secrets: Secrets) -> Json:
    """Describe the part of a filter chain that makes it speak TLS, and HTTP/2 or HTTP/1.1 by ALPN."""
    return {
        "transport_socket_connect_timeout": _HANDSHAKE_TIMEOUT,
        "transport_socket": _socket(
            "DownstreamTlsContext", ["h2", "http/1.1"], secrets.certificate(LISTENER, pair)
        ),
    }


def pools_tls(protocol: str, tls: PoolTls, secrets: Secrets) -> Json:
    """Describe the TLS of the pools' cluster."""
    checks = {} if tls.sni is None else _signed_for("DNS", tls.sni)
    name = {"auto_host_sni": True, "auto_sni_san_validation": True} if tls.sni is None else {"sni": tls.sni}
    common = {
        **secrets.authorities(AUTHORITIES, tls.authorities, checks),
        **secrets.certificate(POOLS, tls.pair),
    }
    return {"transport_socket": _socket("UpstreamTlsContext", [_ALPN[protocol]], common, **name)}


def picker_tls(picker: Address, authorities: Path) -> Json:
    """Describe the TLS of the picker's cluster. Its certificate must be for the host in its address."""
    by_number = is_ip(picker.host)
    checks = _signed_for("IP_ADDRESS" if by_number else "DNS", picker.host)
    common = Secrets().authorities("", authorities, checks)
    name = {} if by_number else {"sni": picker.host}
    return {"transport_socket": _socket("UpstreamTlsContext", ["h2"], common, **name)}


def certificate_secret(name: str, pem: Pem) -> str:
    """Return the contents of the file of a certificate."""
    sources = {"certificate_chain": {"inline_string": pem.cert}, "private_key": {"inline_string": pem.key}}
    return _secret(name, tls_certificate=sources)


def authorities_secret(name: str, pem: str) -> str:
    """Return the contents of the file of authorities."""
    return _secret(name, validation_context={"trusted_ca": {"inline_string": pem}})


def _secret(name: str, **value: Json) -> str:
    return json.dumps({"resources": [{"@type": f"{_TLS}.Secret", "name": name, **value}]})


def _signed_for(kind: str, name: str) -> Json:
    return {"match_typed_subject_alt_names": [{"san_type": kind, "matcher": {"exact": name}}]}


def _socket(kind: str, alpn: Sequence[str], common: Json, **more: object) -> Json:
    context = {"tls_params": _VERSIONS, "alpn_protocols": [*alpn], **common}
    config = {"@type": f"{_TLS}.{kind}", "common_tls_context": context, **more}
    return {"name": "envoy.transport_sockets.tls", "typed_config": config}


def _file(path: Path) -> Json:
    return {"filename": str(path)}
