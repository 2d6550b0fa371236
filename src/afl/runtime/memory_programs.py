"""Programs, their files and their deployments, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afl.ir.codec import loads
from afl.ir.digest import program_hash
from afl.kernel.errors import NotFound
from afl.kernel.memory.transaction import MemoryTransaction
from afl.runtime.deployments import DeployedVersion
from afl.runtime.memory_tables import MemoryTables

_PROGRAMS = "program"
_DEPLOYMENTS = "deployment"
_SOURCES = "program_source"


class MemoryPrograms(MemoryTables):
    """See `persistence.Programs` and `deployments.Sources` for what each method promises."""

    def save_program(self, text: str) -> str:
        name = program_hash(loads(text))

        def work(transaction: MemoryTransaction) -> None:
            transaction.tables[_PROGRAMS][name] = text

        self._write(work)
        return name

    def get_program(self, program: str) -> str | None:
        return self._read(lambda tables: tables[_PROGRAMS].get(program))

    def deploy(self, name: str, program: str) -> None:
        def work(transaction: MemoryTransaction) -> None:
            tables = transaction.tables
            if program not in tables[_PROGRAMS]:
                raise NotFound(f"there is no program {program}; save it before it is deployed")
            if tables[_DEPLOYMENTS].get(name) != program:
                versions = tables[_versions(name)]
                versions[f"{len(versions):020}"] = DeployedVersion(name, program, transaction.now)
            tables[_DEPLOYMENTS][name] = program

        self._write(work)

    def deployed(self, name: str = "default") -> str | None:
        return self._read(lambda tables: tables[_DEPLOYMENTS].get(name))

    def deployments(self) -> Mapping[str, str]:
        return self._read(lambda tables: dict(sorted(tables[_DEPLOYMENTS].items())))

    def newest_programs(self, limit: int) -> Sequence[str]:
        # a table keeps the order in which it was written
        return self._read(lambda tables: list(tables[_PROGRAMS])[::-1][:limit])

    def save_sources(self, program: str, files: Mapping[str, str]) -> None:
        def work(transaction: MemoryTransaction) -> None:
            if program in transaction.tables[_PROGRAMS]:
                transaction.tables[_SOURCES][program] = dict(sorted(files.items()))

        self._write(work)

    def get_sources(self, program: str) -> Mapping[str, str]:
        return self._read(lambda tables: dict(tables[_SOURCES].get(program, {})))

    def deployment_history(self, name: str, limit: int = 100) -> Sequence[DeployedVersion]:
        return self._read(lambda tables: list(tables[_versions(name)].values())[::-1][:limit])


def _versions(name: str) -> str:
    return f"deployment_version:{name}"
