"""The ready line: what a picker or a gateway prints when it serves, as data and as a sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.addresses import Address, parse_address


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """Where a server listens, where its admin port is, and what it balances.

    `listen` takes Envoys (picker) or clients (gateway).
    """

    listen: Address
    admin: Address
    pools: int
    policy: str

    def to_json(self) -> str:
        """Return one line of JSON, for `--ready-json`."""
        values = {
            "listen": str(self.listen),
            "admin": str(self.admin),
            "pools": self.pools,
            "policy": self.policy,
        }
        return json.dumps(values)

    @classmethod
    def from_json(cls, text: str) -> Ready:
        """Read what `to_json` wrote. Unknown keys are ignored; a missing or wrong value is an InputError."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError(f"A ready line must be a JSON object, not {shown(text)}.") from None
        if not isinstance(values, dict):
            raise InputError(f"A ready line must be a JSON object, not {shown(text)}.")
        pools, policy = values.get("pools"), values.get("policy")
        if isinstance(pools, bool) or not isinstance(pools, int) or pools < 0:
            raise InputError(f"The key 'pools' of a ready line must be a number of pools, not {shown(pools)}.")
        if not isinstance(policy, str) or not policy:
            raise InputError(
                f"The key 'policy' of a ready line must be the name of a policy, not {shown(policy)}."
            )
        return cls(
            listen=_address("listen", values.get("listen")),
            admin=_address("admin", values.get("admin")),
            pools=pools,
            policy=policy,
        )

    def sentence(self, *, program: str = "evenly picker", scheme: str = "", admin_scheme: str = "http://") -> str:
        """Return the line for people. `scheme` precedes the listening address, as in http://."""
        pools = "1 pool" if self.pools == 1 else f"{self.pools} pools"
        return (
            f"{program}: listening on {scheme}{self.listen}, admin at {admin_scheme}{self.admin}, "
            f"{pools}, policy {self.policy}"
        )


def _address(key: str, value: object) -> Address:
    try:
        return parse_address(value if isinstance(value, str) else "")
    except InputError:
        raise InputError(f"The key {key!r} of a ready line must be HOST:PORT, not {shown(value)}.") from None
