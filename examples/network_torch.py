"""The network in PyTorch, its parameters and gradients living in two NumPy arrays that mpi4py can reduce in place."""

from __future__ import annotations

import network
import numpy as np
import torch
import torch.nn.functional as layers

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)


class TorchNetwork:
    name = f"PyTorch {torch.__version__}"

    def __init__(self, hidden: int, seed: int) -> None:
        self.weights = network.initial_weights(hidden, seed)
        self.gradients = np.zeros_like(self.weights)
        self._parameters = []
        for weight, gradient in zip(network.views(self.weights, hidden), network.views(self.gradients, hidden), strict=True):
            parameter = torch.nn.Parameter(torch.from_numpy(weight))
            parameter.grad = torch.from_numpy(gradient)
            self._parameters.append(parameter)

    def _scores(self, images: np.ndarray) -> torch.Tensor:
        w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = self._parameters
        x = layers.max_pool2d(torch.relu(layers.conv2d(torch.from_numpy(images), w1, b1)), 2)
        x = layers.max_pool2d(torch.relu(layers.conv2d(x, w2, b2)), 2).flatten(1)
        x = torch.relu(layers.linear(x, w3, b3))
        x = torch.relu(layers.linear(x, w4, b4))
        return layers.linear(x, w5, b5)

    def learn(self, images: np.ndarray, labels: np.ndarray) -> float:
        """The mean loss of a batch; `gradients` holds its gradients afterwards."""
        self.gradients[:] = 0
        loss = layers.cross_entropy(self._scores(images), torch.from_numpy(labels))
        loss.backward()
        return loss.item()

    def correct(self, images: np.ndarray, labels: np.ndarray) -> int:
        """How many images it classifies rightly."""
        with torch.no_grad():
            return int((self._scores(images).argmax(1).numpy() == labels).sum())
