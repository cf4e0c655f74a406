#!/usr/bin/env python3
"""Data-parallel training with Horovod 0.28.1 and TensorFlow 2.15, to be characterised (README.md says how to install both).

A classifier of three dense layers learns a class of random vectors; what it sends does not depend on what it learns. Gradients
are fused up to HOROVOD_FUSION_THRESHOLD bytes.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import horovod.tensorflow as hvd
import tensorflow as tf


def make_model(width: int, classes: int) -> tf.keras.Model:
    layers = [tf.keras.layers.Dense(width, activation="relu") for _ in range(2)]
    return tf.keras.Sequential([tf.keras.Input((512,)), *layers, tf.keras.layers.Dense(classes)])


def batch(generator: tf.random.Generator, size: int, truth: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    vectors = generator.normal((size, 512))
    return vectors, tf.argmax(vectors @ truth, axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=2048)
    options = parser.parse_args()
    hvd.init()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.keras.utils.set_random_seed(3)
    model = make_model(options.width, 100)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.legacy.SGD(0.01 * hvd.size())
    truth = tf.random.Generator.from_seed(1).normal((512, 100))
    generator = tf.random.Generator.from_seed(2 + hvd.rank())

    @tf.function
    def step(vectors: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(classes, model(vectors, training=True))
        gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    begin = time.perf_counter()
    for number in range(options.steps):
        loss = step(*batch(generator, options.batch, truth))
        if number == 0:
            hvd.broadcast_variables(model.variables, root_rank=0)
            hvd.broadcast_variables(optimizer.variables(), root_rank=0)
            begin = time.perf_counter()
    if hvd.rank() == 0:
        spent = time.perf_counter() - begin
        each = spent / max(1, options.steps - 1)
        print(f"{hvd.size()} ranks, {options.steps} steps, last loss {float(loss):.6f}, {each:.3f} s a step")


if __name__ == "__main__":
    main()
