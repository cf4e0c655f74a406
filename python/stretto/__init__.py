"""Stretto: speeds up the collectives of unmodified MPI programs and shows where their time goes."""

__version__ = "0.1.0"
