"""Opens the link to a board: a serial port, a simulation behind a socket, or Ethernet.

In: `/dev/ttyUSB0`, `socket://host:port` or `etherbone://host`. Out: `Link`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from relay_hw.accel.fpga.etherbone import PREFIX, open_etherbone
from relay_hw.accel.fpga.link import Link, LinkError
from relay_hw.accel.fpga.uartbone import Stream, UartboneLink


def open_link(port: str, baud: int, seconds: float) -> Link:
    """Open a serial port, `socket://host:port` or `etherbone://host`; `seconds`: how long an answer may take.

    Raises LinkError.
    """
    if port.startswith(PREFIX):
        return open_etherbone(port, seconds)
    try:
        import serial
    except ImportError:
        raise LinkError("pyserial must be installed to reach a board: pip install 'relay-hw[fpga]'") from None
    module: Any = serial
    try:
        stream: Stream = module.serial_for_url(port, baudrate=baud, timeout=seconds, write_timeout=seconds)
    except (OSError, ValueError) as error:
        raise LinkError(f"port {port} must be a serial port or socket://host:port: {error}") from None
    hurry(stream)
    return UartboneLink(stream, port)


def hurry(stream: Stream) -> None:
    """Let a USB adapter hand on short answers at once, where it can: most wait 16 ms for more bytes."""
    ask = getattr(stream, "set_low_latency_mode", None)
    if ask is not None:
        # Ports that are no adapters, and systems other than Linux, say no in these ways: the link works as it is.
        with suppress(OSError, ValueError, NotImplementedError):
            ask(True)
