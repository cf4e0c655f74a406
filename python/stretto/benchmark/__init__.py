"""`stretto bench` and `stretto tune`: the benchmark program, its results, and what is made of them."""
