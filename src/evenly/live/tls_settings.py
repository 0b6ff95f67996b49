"""Settings of TLS, and of what needs HTTP/2 pools. Gateway and picker share them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from evenly.live.fields import file_field
from evenly.live.pool_options import check_pool_options, check_service, check_sni
from evenly.live.tls import KeyPair, pair_of


class TlsSettings(BaseModel):
    """Certificates of our ports, and what pools that speak TLS or gRPC need."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    tls_cert: Annotated[Path | None, Field(strict=False), file_field("tls-cert")] = None
    tls_key: Annotated[Path | None, Field(strict=False), file_field("tls-key")] = None
    admin_tls_cert: Annotated[Path | None, Field(strict=False), file_field("admin-tls-cert")] = None
    admin_tls_key: Annotated[Path | None, Field(strict=False), file_field("admin-tls-key")] = None
    pool_ca: Annotated[Path | None, Field(strict=False), file_field("pool-ca")] = None
    pool_cert: Annotated[Path | None, Field(strict=False), file_field("pool-cert")] = None
    pool_key: Annotated[Path | None, Field(strict=False), file_field("pool-key")] = None
    pool_sni: Annotated[str | None, BeforeValidator(check_sni)] = None
    health_grpc: Annotated[str | None, BeforeValidator(check_service)] = None

    def check_tls(self, protocol: str, health_path: str | None) -> None:
        """Reject half a pair, and options that pools of this protocol cannot have."""
        names = ("pool-ca", "pool-cert", "pool-key", "pool-sni", "health-grpc")
        options = {name: getattr(self, name.replace("-", "_")) for name in names}
        check_pool_options(protocol, {**options, "health-path": health_path})
        for name in ("tls", "admin_tls", "pool_pair"):
            getattr(self, name)  # raises an InputError if half of it is given

    @property
    def tls(self) -> KeyPair | None:
        """The certificate of `listen` and its key, None without TLS."""
        return pair_of(self.tls_cert, self.tls_key)

    @property
    def admin_tls(self) -> KeyPair | None:
        """The certificate of the admin port and its key, None without TLS."""
        return pair_of(self.admin_tls_cert, self.admin_tls_key, "admin-tls")

    @property
    def pool_pair(self) -> KeyPair | None:
        """The certificate that pools ask for, and its key, None without mutual TLS."""
        return pair_of(self.pool_cert, self.pool_key, "pool")
