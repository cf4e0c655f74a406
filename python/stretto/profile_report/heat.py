"""Heat maps: values to colours whose lightness alone carries them, and a picture of them where there are many cells."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

from stretto.profile_report.svg import Drawing
from stretto.wording import duration

# From nearly white to nearly black, even steps of lightness: reads the same in grey.
_ANCHORS = np.array([(238, 243, 249), (178, 205, 230), (104, 155, 203), (43, 95, 152), (10, 33, 72)], dtype=float)
Array = np.ndarray[Any, Any]


def shades(values: Array, log: bool) -> Array:
    """Each value's place between the least and the most positive one, 0.06..1; 0 for 0, NaN stays."""
    values = values.astype(float)
    positive = values[np.isfinite(values) & (values > 0)]
    found = np.where(np.isfinite(values), 0.0, np.nan)
    if not positive.size:
        return found
    low, high = float(positive.min()), float(positive.max())
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = (np.log(values) - np.log(low)) / (np.log(high) - np.log(low))
        place = logs if log and high > low else values / high
    return np.where(values > 0, 0.06 + 0.94 * np.clip(place, 0.0, 1.0), found)


def colors(places: Array) -> Array:
    """RGBA bytes of places 0..1; NaN is transparent."""
    at = np.nan_to_num(places) * (len(_ANCHORS) - 1)
    low = np.minimum(at.astype(int), len(_ANCHORS) - 2)
    part = (at - low)[..., None]
    rgb = _ANCHORS[low] * (1 - part) + _ANCHORS[low + 1] * part
    alpha = np.where(np.isnan(places), 0, 255)[..., None]
    return np.concatenate([np.rint(rgb), alpha], axis=-1).astype(np.uint8)


def css_color(rgba: Array) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in rgba[:3])


def png(rgba: Array) -> str:
    """A data: address of a picture of height x width x RGBA."""
    height, width = rgba.shape[:2]
    rows = np.concatenate([np.zeros((height, 1), np.uint8), rgba.reshape(height, width * 4)], axis=1)
    header = struct.pack(">2I5B", width, height, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def shade_scale(drawing: Drawing, x: float, y: float, values: Array, show: Any = duration) -> None:
    """What `shades(values, log=True)` means; the ramp begins 100 to the right of `x`."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not positive.size:
        return
    if positive.min() == positive.max():
        drawing.text(x + 258, y + 10, f"each {show(float(positive.max()))}", "tick", "end")
        return
    ramp = colors(np.linspace(0.06, 1.0, 64)[None, :])
    drawing.text(x + 92, y + 10, show(float(positive.min())), "tick", "end")
    drawing.image(x + 100, y, 150, 12, png(ramp))
    drawing.text(x + 258, y + 10, show(float(positive.max())), "tick")
    drawing.text(x + 175, y + 24, "logarithmic", "tick", "middle")
