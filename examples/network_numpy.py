"""The same network in NumPy: convolutions as matrix products over unfolded patches, gradients by hand."""

from __future__ import annotations

import network
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

KERNEL = network.KERNEL


def patches(images: np.ndarray) -> np.ndarray:
    """(n, c, h, w) -> (n * oh * ow, c * k * k): each row is what the kernel sees at one place."""
    windows = sliding_window_view(images, (KERNEL, KERNEL), axis=(2, 3))
    n, c, height, width = windows.shape[:4]
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * height * width, c * KERNEL * KERNEL)


def fold(columns: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The adjoint of patches(): adds every patch back to where it came from."""
    n, c, height, width = shape
    out_height, out_width = height - KERNEL + 1, width - KERNEL + 1
    windows = columns.reshape(n, out_height, out_width, c, KERNEL, KERNEL).transpose(0, 3, 4, 5, 1, 2)
    images = np.zeros(shape, columns.dtype)
    for i in range(KERNEL):
        for j in range(KERNEL):
            images[:, :, i : i + out_height, j : j + out_width] += windows[:, :, i, j]
    return images


class Convolution:
    """Convolution, ReLU and 2 x 2 max pooling."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray, d_weight: np.ndarray, d_bias: np.ndarray) -> None:
        self.weight, self.bias, self.d_weight, self.d_bias = weight, bias, d_weight, d_bias

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.shape, channels = x.shape, len(self.bias)
        n, height, width = x.shape[0], x.shape[2] - KERNEL + 1, x.shape[3] - KERNEL + 1
        self.columns = patches(x)
        y = self.columns @ self.weight.reshape(channels, -1).T + self.bias
        blocks = y.reshape(n, height // 2, 2, width // 2, 2, channels).transpose(0, 5, 1, 3, 2, 4)
        self.blocks = blocks.reshape(n, channels, height // 2, width // 2, 4)
        self.winner = self.blocks.argmax(-1)
        return np.maximum(np.take_along_axis(self.blocks, self.winner[..., None], -1)[..., 0], 0)

    def backward(self, d_out: np.ndarray, need_input: bool) -> np.ndarray | None:
        n, channels, height, width = d_out.shape
        best = np.take_along_axis(self.blocks, self.winner[..., None], -1)[..., 0]
        d_blocks = np.zeros_like(self.blocks)
        np.put_along_axis(d_blocks, self.winner[..., None], (d_out * (best > 0))[..., None], -1)
        d_y = d_blocks.reshape(n, channels, height, width, 2, 2).transpose(0, 2, 4, 3, 5, 1).reshape(-1, channels)
        self.d_weight[:] = (d_y.T @ self.columns).reshape(self.d_weight.shape)
        self.d_bias[:] = d_y.sum(0)
        return fold(d_y @ self.weight.reshape(channels, -1), self.shape) if need_input else None


class Dense:
    def __init__(self, weight: np.ndarray, bias: np.ndarray, d_weight: np.ndarray, d_bias: np.ndarray, relu: bool) -> None:
        self.weight, self.bias, self.d_weight, self.d_bias, self.relu = weight, bias, d_weight, d_bias, relu

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        y = x @ self.weight.T + self.bias
        self.y = np.maximum(y, 0) if self.relu else y
        return self.y

    def backward(self, d_y: np.ndarray) -> np.ndarray:
        if self.relu:
            d_y = d_y * (self.y > 0)
        np.matmul(d_y.T, self.x, out=self.d_weight)
        self.d_bias[:] = d_y.sum(0)
        return d_y @ self.weight


class NumpyNetwork:
    name = f"NumPy {np.__version__}"

    def __init__(self, hidden: int, seed: int) -> None:
        self.weights = network.initial_weights(hidden, seed)
        self.gradients = np.zeros_like(self.weights)
        w, d = network.views(self.weights, hidden), network.views(self.gradients, hidden)
        parts = [(w[i], w[i + 1], d[i], d[i + 1]) for i in range(0, len(w), 2)]
        self._convolutions = [Convolution(*part) for part in parts[:2]]
        self._dense = [Dense(*part, relu=number < 2) for number, part in enumerate(parts[2:])]

    def _scores(self, images: np.ndarray) -> np.ndarray:
        x = images
        for convolution in self._convolutions:
            x = convolution.forward(x)
        x = x.reshape(len(x), -1)
        for dense in self._dense:
            x = dense.forward(x)
        return x

    def learn(self, images: np.ndarray, labels: np.ndarray) -> float:
        """The mean loss of a batch; `gradients` holds its gradients afterwards."""
        scores = self._scores(images)
        scores = scores - scores.max(1, keepdims=True)
        log_sum = np.log(np.exp(scores).sum(1, keepdims=True))
        rows = np.arange(len(labels))
        d = np.exp(scores - log_sum)
        d[rows, labels] -= 1
        self._backward(d / np.float32(len(labels)))
        return float((log_sum[:, 0] - scores[rows, labels]).mean())

    def _backward(self, d: np.ndarray) -> None:
        for dense in reversed(self._dense):
            d = dense.backward(d)
        d = d.reshape(len(d), network.CHANNELS[1], 4, 4)
        d = self._convolutions[1].backward(d, need_input=True)
        self._convolutions[0].backward(d, need_input=False)

    def correct(self, images: np.ndarray, labels: np.ndarray) -> int:
        """How many images it classifies rightly."""
        return int((self._scores(images).argmax(1) == labels).sum())
