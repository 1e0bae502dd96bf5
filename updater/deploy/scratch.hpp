#pragma once
// A temporary directory in the repository (hard links to objects must stay on its file system); gone with its
// owner. One that a kill left behind is taken by libostree's own expiry of repo/tmp.

#include <string>

#include "base/result.hpp"

namespace rasupd {

class Scratch {
 public:
  static Result<Scratch> make(const std::string& sysroot);
  Scratch(Scratch&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();
  const std::string& path() const { return path_; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace rasupd
