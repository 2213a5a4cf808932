"""Ctrl-C while learning: the first lets the step end, a second does not wait."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final


@final
class Interrupt:
    """Whether Ctrl-C was pressed."""

    def __init__(self):
        self.asked = False

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Inside, the first Ctrl-C sets `asked`, and a second raises KeyboardInterrupt."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask(number: int, frame: Any) -> None:
            self.asked = True
            signal.signal(signal.SIGINT, signal.default_int_handler)

        before = signal.signal(signal.SIGINT, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
