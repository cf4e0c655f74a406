#!/usr/bin/env python3
"""Data-parallel training with JAX, gradients summed by mpi4jax.

With and without `stretto run` losses and weights agree; with more than two ranks MPI may add in another order.
"""

from __future__ import annotations

import sys
import time

import jax
import jax.numpy as jnp
import mpi4jax
from mpi4py import MPI

comm = MPI.COMM_WORLD


def loss_of(weights: list[jax.Array], vectors: jax.Array, classes: jax.Array) -> jax.Array:
    for weight in weights[:-1]:
        vectors = jax.nn.relu(vectors @ weight)
    chances = jax.nn.log_softmax(vectors @ weights[-1])
    return -chances[jnp.arange(len(classes)), classes].mean()


@jax.jit
def step(weights: list[jax.Array], vectors: jax.Array, classes: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    loss, gradients = jax.value_and_grad(loss_of)(weights, vectors, classes)
    sums = [mpi4jax.allreduce(one, op=MPI.SUM, comm=comm) for one in gradients]
    return [weight - 0.1 / comm.size * one for weight, one in zip(weights, sums, strict=True)], loss


def main() -> None:
    width, steps = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (1024, 150)
    key = jax.random.PRNGKey(0)
    weights = [jax.random.normal(key, shape) * 0.03 for shape in ((64, width), (width, width), (width, 10))]
    vectors = jax.random.normal(jax.random.PRNGKey(comm.rank + 1), (64, 64))
    classes = jnp.argmax(vectors[:, :10], 1)
    weights, loss = step(weights, vectors, classes)
    jax.block_until_ready(weights)
    comm.Barrier()
    begin = time.perf_counter()
    for _ in range(steps):
        weights, loss = step(weights, vectors, classes)
    jax.block_until_ready(weights)
    each = 1e3 * (time.perf_counter() - begin) / steps
    if comm.rank == 0:
        total = float(sum(jnp.abs(weight).sum() for weight in weights))
        print(f"{comm.size} ranks, last loss {float(loss):.8f}, sum of weights {total:.6f}, {each:.2f} ms a step")


if __name__ == "__main__":
    main()
