#include "bench/arrival.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

namespace stretto::bench {

const char* const shape_names[shape_count] = {"balanced", "ascending", "descending", "first-delayed", "last-delayed",
                                              "random",   "k-late",    "half-late",  "node-late",     "replay"};

namespace {

// splitmix64: a new number for each state.
uint64_t mixed(uint64_t state) {
  state += 0x9e3779b97f4a7c15u;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
  return state ^ (state >> 31);
}

double uniform(uint64_t number) {
  return double(number >> 11) * 0x1p-53;
}

// The share of rank `r` of `p`, before the ranks change places.
double share(const Pattern& pattern, uint64_t random, int r, int p) {
  switch (pattern.shape) {
    case Shape::ascending:
      return p > 1 ? double(r) / (p - 1) : 0;
    case Shape::descending:
      return p > 1 ? double(p - 1 - r) / (p - 1) : 0;
    case Shape::first:
      return r == 0;
    case Shape::last:
      return r == p - 1;
    case Shape::some:
      return r >= p - pattern.late;
    case Shape::half:
      return r >= p - std::max(p / 2, 1);
    case Shape::node:
      return pattern.node_of[r] == (pattern.permuted ? int(random % uint64_t(pattern.nodes)) : pattern.nodes - 1);
    case Shape::random:
      return uniform(mixed(random + uint64_t(r)));
    default:
      return 0;
  }
}

void permute(uint64_t random, int count, double* values) {
  for (int i = count - 1; i > 0; --i) std::swap(values[i], values[mixed(random + uint64_t(i) * 7919) % uint64_t(i + 1)]);
}

bool grow(Pattern* pattern, int ranks, size_t* room) {
  const size_t larger = *room == 0 ? 64 : *room * 2;
  std::unique_ptr<double[]> more(new (std::nothrow) double[larger * size_t(ranks)]);
  if (!more) return false;
  std::copy_n(pattern->recorded.get(), pattern->rows * size_t(ranks), more.get());
  pattern->recorded = std::move(more);
  *room = larger;
  return true;
}

bool parse_row(const char* line, int ranks, double* row) {
  for (int r = 0; r < ranks; ++r) {
    char* end;
    row[r] = strtod(line, &end);
    if (end == line || !(row[r] >= 0) || row[r] > 1e12) return false;
    line = end;
  }
  return line[strspn(line, " \t\r\n")] == '\0';
}

}  // namespace

bool parse_shape(const char* text, Pattern* pattern) {
  char* end;
  const long number = strtol(text, &end, 10);
  if (end != text && strcmp(end, "-late") == 0 && number > 0 && number < 1 << 20)
    return pattern->shape = Shape::some, pattern->late = int(number), true;
  for (int i = 0; i < shape_count; ++i) {
    if (Shape(i) == Shape::some || strcmp(text, shape_names[i]) != 0) continue;
    pattern->shape = Shape(i);
    return true;
  }
  return false;
}

const char* read_recorded(const char* path, int ranks, Pattern* pattern) {
  FILE* file = fopen(path, "re");
  if (file == nullptr) return "the file of recorded delays cannot be read";
  size_t room = 0, capacity = 0;
  char* line = nullptr;
  const char* problem = nullptr;
  while (problem == nullptr && getline(&line, &capacity, file) > 0) {
    if (line[0] == '#') continue;
    if (pattern->rows == room && !grow(pattern, ranks, &room))
      problem = "no memory for the recorded delays";
    else if (!parse_row(line, ranks, &pattern->recorded[pattern->rows * size_t(ranks)]))
      problem = "the recorded delays are not those of as many ranks";
    else
      ++pattern->rows;
  }
  free(line);
  fclose(file);
  return problem == nullptr && pattern->rows == 0 ? "the recorded delays are of no call" : problem;
}

void delays_of(const Pattern& pattern, uint64_t call, int ranks, double* delays) {
  if (pattern.shape == Shape::replay) {
    std::copy_n(&pattern.recorded[call % pattern.rows * size_t(ranks)], ranks, delays);
    return;
  }
  const uint64_t random = mixed(pattern.seed * 0x10001 + call) >> 1;
  for (int r = 0; r < ranks; ++r) delays[r] = share(pattern, random, r, ranks);
  if (pattern.permuted && pattern.shape != Shape::node) permute(random, ranks, delays);
}

}  // namespace stretto::bench
