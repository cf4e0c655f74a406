"""The convolutional network of the training example: two convolutions with pooling, two dense layers.

Both implementations keep all weights in one flat float32 array and all gradients in another, layer after layer, so that a
bucket of gradients is a slice that MPI sums in place.
"""

from __future__ import annotations

import math

import numpy as np

CHANNELS = (16, 32)
KERNEL = 5
CLASSES = 10
FEATURES = CHANNELS[1] * 4 * 4  # what is left of 28 x 28 after two convolutions and poolings


def shapes(hidden: int) -> list[tuple[int, ...]]:
    """Weights and biases, in order."""
    first, second = CHANNELS
    return [
        (first, 1, KERNEL, KERNEL),
        (first,),
        (second, first, KERNEL, KERNEL),
        (second,),
        (hidden, FEATURES),
        (hidden,),
        (hidden, hidden),
        (hidden,),
        (CLASSES, hidden),
        (CLASSES,),
    ]


def initial_weights(hidden: int, seed: int) -> np.ndarray:
    """He initialisation, flat."""
    generator = np.random.default_rng(seed)
    parts = []
    for shape in shapes(hidden):
        deviation = math.sqrt(2.0 / math.prod(shape[1:])) if len(shape) > 1 else 0.0
        parts.append(generator.standard_normal(math.prod(shape)) * deviation)
    return np.concatenate(parts).astype(np.float32)


def views(flat: np.ndarray, hidden: int) -> list[np.ndarray]:
    """The layers' arrays inside the flat one."""
    result, begin = [], 0
    for shape in shapes(hidden):
        end = begin + math.prod(shape)
        result.append(flat[begin:end].reshape(shape))
        begin = end
    return result


def make(backend: str, hidden: int, seed: int):
    """`backend`: torch, numpy, or auto for torch where it can be imported."""
    if backend != "numpy":
        try:
            from network_torch import TorchNetwork

            return TorchNetwork(hidden, seed)
        except ImportError:
            if backend == "torch":
                raise SystemExit("PyTorch is not installed for this Python: use --backend numpy") from None
    from network_numpy import NumpyNetwork

    return NumpyNetwork(hidden, seed)
