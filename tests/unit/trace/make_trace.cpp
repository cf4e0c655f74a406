// make_trace FOLDER: writes the example traces and their truths (tests/golden/trace_v2) into an existing folder.
#include <stdio.h>

#include "unit/trace/trace_examples.hpp"

int main(int argc, char** argv) {
  using namespace stretto::trace::testing;
  if (argc != 2) {
    fprintf(stderr, "usage: make_trace FOLDER\n");
    return 2;
  }
  for (const Example& example : examples) {
    if (!write_example(example, argv[1])) {
      fprintf(stderr, "make_trace: %s cannot be written into %s\n", example.name, argv[1]);
      return 1;
    }
  }
  return 0;
}
