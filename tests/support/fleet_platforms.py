"""Openers of in-memory platforms, credentials that are counted, and agents without processes."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from svc_trial_runner.fleet.adapters.memory import InMemoryPlatform, InMemoryPlatformAdapter
from svc_trial_runner.fleet.domain.agents import AgentCredentials, AgentName
from svc_trial_runner.fleet.ports import PlatformAdapter, PlatformError


@dataclass
class InMemoryPlatforms:
    """`PlatformOpener` of in-memory platforms by name."""

    installation: str
    platforms: dict[str, InMemoryPlatform] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    async def open(
        self, pool: str, key: str, platform: str, options: Mapping[str, object], secrets_id: str
    ) -> PlatformAdapter:
        if platform not in self.platforms:
            raise PlatformError(f"no platform {platform}", "install it", permanent=True)
        self.opened.append(key)
        return InMemoryPlatformAdapter(self.platforms[platform], self.installation, pool)

    async def forget(self, pool: str, key: str = "") -> None:
        self.forgotten.append(f"{pool}/{key}" if key else pool)


@dataclass
class InMemoryCredentials:
    """`CredentialStore` that remembers which agents have valid credentials."""

    valid: dict[AgentName, AgentCredentials] = field(default_factory=dict)
    issued: list[AgentName] = field(default_factory=list)
    revoking: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when credentials are about to be revoked."""
    may_revoke: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_revoke.set()

    async def issue(self, name: AgentName) -> AgentCredentials:
        self.issued.append(name)
        self.valid[name] = AgentCredentials(str(name), "password", f"token-{len(self.issued)}")
        return self.valid[name]

    async def revoke(self, names: Sequence[AgentName]) -> None:
        self.revoking.set()
        await self.may_revoke.wait()
        for name in names:
            self.valid.pop(name, None)
