"""From a folder of traces to a filled Profile."""

from stretto.profile.analyse import analyse

__all__ = ["analyse"]
