"""What a result keeps of a stream: the beginning and the end, in bounded memory."""

from __future__ import annotations

from collections import deque

from afl.exec.model import Captured


class Capture:
    """Takes the data of one stream."""

    def __init__(self, most: int) -> None:
        self._head_room = most // 2
        self._tail_room = most - self._head_room
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._cut = 0

    def feed(self, data: bytes) -> None:
        if self._head_room:
            first, data = data[: self._head_room], data[self._head_room :]
            self._head_room -= len(first)
            self._head.append(first)
        if not data:
            return
        self._tail.append(data)
        self._tail_bytes += len(data)
        while self._tail_bytes > self._tail_room:
            oldest = self._tail.popleft()
            over = min(self._tail_bytes - self._tail_room, len(oldest))
            self._cut += over
            self._tail_bytes -= over
            if over < len(oldest):
                self._tail.appendleft(oldest[over:])

    def captured(self) -> Captured:
        return Captured(b"".join(self._head), b"".join(self._tail), self._cut)
