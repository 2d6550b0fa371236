"""Connections and transactions: one place that knows how PostgreSQL fails.

Everything here may be repeated: a deadlock, a lost race or a lock that is taken is tried again at
once, after a short random wait; a lost connection is `StoreUnavailable`, and the caller decides.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import Connection, Cursor, errors, generators
from psycopg.abc import PQGen
from psycopg.abc import Transformer as Reader
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from afl.kernel.confining import confined_to
from afl.kernel.errors import (
    BadRequest,
    Fenced,
    KernelError,
    LaneCycle,
    NotFound,
    StoreUnavailable,
    TooDeep,
)
from afl.kernel.postgres.pooling import Pool
from afl.kernel.postgres.statements import Hot, Parameters
from afl.kernel.postgres.walls import Wall, only_reads

Row = tuple[Any, ...]

#: A server that a cut network hides says nothing. Whoever waits for it hears so within seconds, not
#: when the system gives up after a quarter of an hour.
_NOTICE_SILENCE = {
    "tcp_user_timeout": 10_000,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
T = TypeVar("T")
#: A statement with its parameters.
Sent = tuple[Hot, Parameters]


class NotPlain(KernelError):
    """What was asked for the short way has to go the long way. No caller of the store sees this."""

    code = "kernel.not_plain"


#: The codes under which our own SQL functions refuse.
_REFUSALS: Mapping[str, type[KernelError]] = {
    "AF000": NotPlain,
    "AF001": Fenced,
    "AF002": LaneCycle,
    "AF003": TooDeep,
    "AF004": BadRequest,
    "AF005": NotFound,
}
#: Serialization failure, deadlock, lock not available, a prepared statement that the server has
#: forgotten: the same again will do.
_TRY_AGAIN = frozenset({"40001", "40P01", "55P03", "26000"})
#: Connection exceptions, out of resources, shut down by an operator, read-only after a failover.
_AWAY = ("08", "53", "57P", "25006")
_TRIES = 12
_FIRST_WAIT_SECONDS = 0.002
_MAX_WAIT_SECONDS = 0.1
#: Without a name, so never prepared.
_BEGIN, _COMMIT, _ROLLBACK = (Hot(b"", word, ()) for word in (b"begin", b"commit", b"rollback"))


class Session(Connection[Row]):
    """A connection that runs hot statements without what a cursor does around them."""

    def __init__(self, pgconn: PGconn) -> None:
        super().__init__(pgconn)
        self._known: set[bytes] = set()
        #: of each hot statement, so that what its columns are is looked up once
        self._readers: dict[bytes, Reader] = {}

    def call(self, statement: Hot, parameters: Parameters) -> list[Row]:
        """The rows of a statement, which is a transaction of its own."""
        if not self._is_ready(statement):
            return self.call_all([(statement, parameters)])[0]
        self._send(statement, parameters)
        (result,) = self.wait(generators.execute(self.pgconn))
        return self._rows(statement, result)

    def call_all(self, statements: Sequence[Sent]) -> list[list[Row]]:
        """The rows of each statement, in one round trip.

        They are one transaction, unless one is open: without `begin`, PostgreSQL commits what was
        sent up to a sync, and nothing of it if one of them failed.
        """
        prepared: dict[int, bytes] = {}
        count = 0
        self.pgconn.enter_pipeline_mode()
        try:
            for statement, parameters in statements:
                if not self._is_ready(statement) and statement.name not in prepared.values():
                    self.pgconn.send_prepare(statement.name, statement.query)
                    prepared[count] = statement.name
                    count += 1
                self._send(statement, parameters)
                count += 1
            self.pgconn.pipeline_sync()
            results = self.wait(self._results(count))
        finally:
            self._leave_pipeline()
        rows = []
        sent = iter(statements)
        for place, result in enumerate(results):
            if place in prepared:
                self._check(result)
                self._known.add(prepared[place])
            else:
                rows.append(self._rows(next(sent)[0], result))
        return rows

    def _is_ready(self, statement: Hot) -> bool:
        """Whether it needs no preparation."""
        known = statement.name in self._known
        return known or not statement.name or self.prepare_threshold is None

    def _send(self, statement: Hot, parameters: Parameters) -> None:
        # as `encoded` does it, and without a call for each
        values = [
            value if value is None or type(value) is bytes else str(value).encode()
            for value in map(parameters.__getitem__, statement.parameters)
        ]
        if statement.name and self.prepare_threshold is not None:
            self.pgconn.send_query_prepared(statement.name, values)
        else:
            self.pgconn.send_query_params(statement.query, values)

    def _results(self, count: int) -> PQGen[list[PGresult]]:
        yield from generators.send(self.pgconn)
        results: list[PGresult] = []
        while len(results) < count:
            results += yield from generators.fetch_many(self.pgconn)
        yield from generators.fetch_many(self.pgconn)  # the end of the pipeline
        return results

    def _leave_pipeline(self) -> None:
        try:
            self.pgconn.exit_pipeline_mode()
        except psycopg.OperationalError:
            # interrupted: what is still under way must not be taken for the next answer
            self.close()

    def _rows(self, statement: Hot, result: PGresult) -> list[Row]:
        self._check(result)
        reader = self._readers.get(statement.name)
        if reader is None:
            reader = Transformer(self)
            reader.set_pgresult(result)
            # without a name it may be any statement
            if statement.name:
                self._readers[statement.name] = reader
        else:
            reader.set_pgresult(result, set_loaders=False)
        rows = reader.load_rows(0, result.ntuples, tuple)
        # or the reader would keep the result until the next one
        reader.set_pgresult(None, set_loaders=False)
        return rows

    def _check(self, result: PGresult) -> None:
        if result.status == ExecStatus.FATAL_ERROR:
            error = errors.error_from_result(result, encoding=self.info.encoding)
            if isinstance(error, errors.InvalidSqlStatementName):
                # the driver forgets all that is prepared when it rolls back
                self._known.clear()
            raise error


class PostgresTransaction:
    """The open transaction, for a caller's own writes."""

    __slots__ = ("_answers", "_begun", "_cursor", "_failure", "_gathered", "_sent", "_session")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sent: list[Callable[[], Sent]] = []
        self._gathered: dict[bytes, list[Any]] = {}
        self._answers: list[list[Row]] = []
        self._begun = False
        self._failure: psycopg.Error | None = None
        self._cursor: Cursor[Row] | None = None

    def send(self, statement: Hot, parameters: Parameters) -> None:
        """Has a statement run without waiting for it, at the latest when the transaction ends.

        All that is sent in between is one round trip. If it fails, the transaction does.
        """
        self._sent.append(lambda: (statement, parameters))

    def gather(self, statement: Hot, pack: Callable[[list[T]], Parameters], item: T) -> None:
        """Like `send`, for a statement that does any number of things at once: those that are
        gathered before it is run are one statement, at the place of the first."""
        items = self._gathered.get(statement.name)
        if items is None:
            first = self._gathered[statement.name] = [item]
            self._sent.append(lambda: (statement, pack(first)))
        else:
            items.append(item)

    @property
    def cursor(self) -> Cursor[Row]:
        """For statements whose answers are needed. What was sent before has been run."""
        self.flush()
        if self._cursor is None:
            self._cursor = self._session.cursor()
        return self._cursor

    def flush(self) -> list[list[Row]]:
        """Runs what was sent; answers with the rows of every statement that was ever sent."""
        if self._sent or not self._begun:
            begin: list[Sent] = [] if self._begun else [(_BEGIN, {})]
            self._begun = True
            try:
                answers = self._session.call_all([*begin, *self._take_sent()])
            except psycopg.Error as error:
                self._failure = error
                raise
            self._answers += answers[len(begin) :]
        return self._answers

    def _take_sent(self) -> list[Sent]:
        sent = [make() for make in self._sent]
        self._sent.clear()
        self._gathered.clear()
        return sent

    def end(self) -> list[list[Row]]:
        """Commits; answers with the rows of every statement that was sent."""
        if not self._begun:
            return self._session.call_all(sent) if (sent := self._take_sent()) else []
        if self._session.info.transaction_status == TransactionStatus.INERROR:
            # even if the caller has ignored that
            raise self._failure or errors.InFailedSqlTransaction(
                "a statement failed; nothing can be committed"
            )
        answers = self._session.call_all([*self._take_sent(), (_COMMIT, {})])
        return self._answers + answers[:-1]

    def abandon(self) -> None:
        """Rolls back, if there is anything to."""
        open_ = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
        if self._session.info.transaction_status in open_:
            self._session.call_all([(_ROLLBACK, {})])


class Database:
    """A pool of connections, and transactions on them."""

    def __init__(
        self,
        url: str,
        *,
        min_size: int = 1,
        max_size: int = 16,
        timeout_seconds: float = 10.0,
        prepare_threshold: int | None = 1,
        prepare: Callable[[Connection[Row]], None] | None = None,
    ) -> None:
        """Connections are made when they are needed.

        Args:
            url: a connection string or URL of libpq.
            min_size: how many connections are kept.
            max_size: how many there may be; more than sixteen rarely help.
            timeout_seconds: how long to wait for a connection.
            prepare_threshold: after how many uses a statement is prepared; None for never, which
                poolers in transaction mode may need.
            prepare: called with each connection before each use; for tests that move the clock.
        """
        self._prepare = prepare
        self._wall = Wall()
        self._pool = Pool(
            ConnectionPool(
                url,
                connection_class=Session,
                min_size=min_size,
                max_size=max_size,
                timeout=timeout_seconds,
                open=False,
                kwargs={
                    "autocommit": True,
                    "prepare_threshold": prepare_threshold,
                    "application_name": "afl",
                    "connect_timeout": max(2, int(timeout_seconds)),
                    **_NOTICE_SILENCE,
                },
            )
        )
        self._wait = threading.Event().wait
        self._random = random.Random()

    def close(self) -> None:
        """Give all connections back. The database is not usable afterwards."""
        self._pool.close()

    def rows(
        self, statement: bytes, parameters: Mapping[str, object], *, prepare: bool | None = None
    ) -> list[Row]:
        """Run one statement as one transaction, in one round trip.

        Args:
            prepare: False if which plan is best depends on the parameters.
        """
        return self._ask(
            statement,
            lambda cursor: cursor.execute(statement, parameters, prepare=prepare).fetchall(),
        )

    def row(self, statement: bytes, parameters: Mapping[str, object]) -> Row | None:
        """The first row of one statement, run as one transaction."""
        return self._ask(statement, lambda cursor: cursor.execute(statement, parameters).fetchone())

    def call(self, statement: Hot, parameters: Parameters) -> list[Row]:
        """Run one hot statement as one transaction, in one round trip."""
        if confined_to() is None or not only_reads(statement.query):
            return self._repeat(lambda session: session.call(statement, parameters))
        return self._repeat(
            lambda session: session.call_all(
                [*self._wall.before(session), (statement, parameters)]
            )[-1]
        )

    def _ask(self, statement: bytes, work: Callable[[Cursor[Row]], T]) -> T:
        confined = confined_to() is not None and only_reads(statement)
        return self.read(work) if confined else self.run(work)

    def read(self, work: Callable[[Cursor[Row]], T]) -> T:
        """Do work that only reads, in a transaction, and only what may be read now; see
        `afl.kernel.confining`."""

        def once(session: Session) -> T:
            transaction = PostgresTransaction(session)
            try:
                for each in self._wall.before(session):
                    transaction.send(*each)
                found = work(transaction.cursor)
                transaction.end()
            except BaseException:
                transaction.abandon()
                raise
            return found

        return self._repeat(once)

    def run(self, work: Callable[[Cursor[Row]], T], *, transaction: bool = False) -> T:
        """Do work on a connection; again, if it lost a race. All or nothing with `transaction`.

        It sees the rows of all tenants, whatever may be read now.
        """

        def once(session: Session) -> T:
            if not transaction:
                with session.cursor() as cursor:
                    return work(cursor)
            with session.transaction(), session.cursor() as cursor:
                return work(cursor)

        return self._repeat(once)

    def transact(self, work: Callable[[PostgresTransaction], None]) -> list[list[Row]]:
        """Do work in a transaction; again, if it lost a race. Answers the rows of what was sent."""

        def once(session: Session) -> list[list[Row]]:
            transaction = PostgresTransaction(session)
            try:
                work(transaction)
                return transaction.end()
            except BaseException:
                transaction.abandon()
                raise

        return self._repeat(once)

    def _repeat(self, work: Callable[[Session], T]) -> T:
        for attempt in range(_TRIES):
            try:
                return self._once(work)
            except psycopg.Error as error:
                if error.sqlstate not in _TRY_AGAIN or attempt == _TRIES - 1:
                    raise self._translate(error) from error
            bound = min(_MAX_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt)
            self._wait(self._random.uniform(0, bound))
        raise AssertionError("unreachable")

    def _once(self, work: Callable[[Session], T]) -> T:
        taken = session, _ = self._pool.take()
        try:
            if self._prepare is not None:
                self._prepare(session)
            return work(session)
        finally:
            self._pool.give_back(taken)

    def _translate(self, error: psycopg.Error) -> Exception:
        code = error.sqlstate
        if code is not None and code in _REFUSALS:
            return _REFUSALS[code](error.diag.message_primary)
        if error.diag.constraint_name == "task_pkey":
            return BadRequest("there is a task with this id already; give a fresh one, or none")
        if isinstance(error, psycopg.DataError):
            return BadRequest(f"PostgreSQL cannot store this: {error}")
        if isinstance(error, PoolTimeout | PoolClosed):
            return StoreUnavailable(f"No connection to the database: {error}")
        # InternalError: a pooler answered for a server that it had lost
        lost = code is None and isinstance(error, psycopg.OperationalError | psycopg.InternalError)
        if lost or (code is not None and code.startswith(_AWAY)):
            # the other connections of the pool have probably gone the same way
            self._pool.check()
        elif code not in _TRY_AGAIN:
            return error
        return StoreUnavailable(f"The database cannot answer now: {error}")
