// A directory of small files that stands in for /sys in tests, and goes away with its scope.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace stretto::testing {

class TemporaryTree {
 public:
  TemporaryTree() {
    std::string name = (std::filesystem::temp_directory_path() / "stretto-test-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~TemporaryTree() { std::filesystem::remove_all(root_); }
  TemporaryTree(const TemporaryTree&) = delete;
  TemporaryTree& operator=(const TemporaryTree&) = delete;

  void write(const std::string& path, const std::string& text) {
    std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string path(const std::string& below = "") const { return below.empty() ? root_.string() : (root_ / below).string(); }

 private:
  std::filesystem::path root_;
};

}  // namespace stretto::testing
