// What rules in a text choose.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "select/selector.hpp"

namespace stretto::select {

inline Rules rules_of(const std::string& text) {
  Rules rules;
  Status status = parse_rules(text.data(), text.size(), &rules);
  EXPECT_TRUE(status.ok()) << status.what << " in line " << status.detail;
  return rules;
}

inline std::string chosen(const Rules& rules, Facts facts) {
  Selection s = choose(rules, facts);
  return s.algorithm < 0 ? "mpi" : collective::algorithms[s.algorithm].name;
}

}  // namespace stretto::select
