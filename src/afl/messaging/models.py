"""What agents send each other. The names, fields and defaults are those of the specification."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

#: A type or instance is part of a key: no separators, no hash tags.
_Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^:{}\s]+$")]
#: What stands in keys for an agent without an instance.
DEFAULT_INSTANCE = "default"


class AgentId(BaseModel):
    """Who sends, and who receives."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: _Name = Field(description="what kind of agent it is, such as `reviewer`")
    instance: _Name | None = Field(default=None, description="which of several")

    def __str__(self) -> str:
        return f"{self.type}:{self.instance or DEFAULT_INSTANCE}"

    @classmethod
    def parse(cls, text: str) -> AgentId:
        """From `type` or `type:instance`."""
        type_, _, instance = text.partition(":")
        return cls(type=type_, instance=instance or None)


class MessagePriority(int, Enum):
    """What is received first."""

    LOW = 1
    NORMAL = 5
    HIGH = 9


class MessageType(StrEnum):
    """What a message wants."""

    REQUEST = "request"
    RESPONSE = "response"
    EVENT = "event"


class FailureType(StrEnum):
    """Why a message was not processed."""

    TRANSIENT = "transient"  # retried, with backoff
    PERMANENT = "permanent"  # to the dead letters
    TIMEOUT = "timeout"  # retried, with backoff


class AgentMessage(BaseModel):
    """A message. Sending the same `message_id` to the same agent again is the same message."""

    model_config = ConfigDict(extra="forbid")

    message_id: str = Field(min_length=6, max_length=200)
    sender: AgentId
    recipient: AgentId
    message_type: MessageType
    payload: dict[str, Any] = Field(default_factory=dict)
    priority: MessagePriority = MessagePriority.NORMAL
    timestamp: str | None = None
    #: what a response answers: the `message_id` of its request
    correlation_id: str | None = None
    #: where a response is wanted; the sender if it is not set
    reply_to: AgentId | None = None
    #: after so many seconds without being received it goes to the dead letters
    ttl_seconds: float | None = Field(default=None, gt=0)
    #: not received before so many seconds have passed
    delay_seconds: float = Field(default=0.0, ge=0)
    #: W3C trace context and the like; carried as it is
    headers: dict[str, str] = Field(default_factory=dict)


class QueueMessage(BaseModel):
    """A message as it lies in a mailbox."""

    message: AgentMessage
    priority: MessagePriority
    enqueued_at: str | None = None
    #: how often it was received, whatever came of it
    delivery_attempts: int = 0
    last_error: str | None = None


class ReceivedMessage(BaseModel):
    """A message in somebody's hands until the deadline; the token acknowledges it."""

    token: str
    queue_message: QueueMessage
    visibility_deadline: str | None = None


class MessageResult(BaseModel):
    """What came of sending."""

    message_id: str
    delivered: bool
    error: str | None = None


class MessageSubscription(BaseModel):
    """Which types of messages an agent wants. Others are not received while one stands."""

    subscription_id: str
    agent_id: AgentId
    message_types: list[MessageType]


class DeadLetter(BaseModel):
    """A message that was given up."""

    queue_message: QueueMessage
    reason: str
    at: str


class MailboxCounts(BaseModel):
    """Where the messages of a mailbox are. `sent` is the sum of the others."""

    sent: int = 0
    ready: int = 0
    delayed: int = 0
    reserved: int = 0
    acked: int = 0
    dead: int = 0
    #: dead letters that were removed for good
    purged: int = 0


class CoordinatorConfig(BaseModel):
    """What `configure` sets, for all processes."""

    model_config = ConfigDict(frozen=True)

    queue_size: int = Field(default=10_000, ge=1)
    retry_attempts: int = Field(default=3, ge=0)
    backoff_base: float = Field(default=1.0, gt=0)
    backoff_factor: float = Field(default=2.0, ge=1)
    backoff_max: float = Field(default=30.0, gt=0)
    #: `strict`: the highest priority first. `weighted`: 9, 5, 1 of fifteen, so that LOW moves too
    fairness: str = Field(default="strict", pattern="^(strict|weighted)$")
    #: how long a message id is remembered, so that sending it again changes nothing
    dedupe_seconds: float = Field(default=86_400.0, gt=0)
    version: int = 0
