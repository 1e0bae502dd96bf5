#pragma once
// Repo: an ostree repository (bare mode) as the importer and the clean-up need it. Thread-safe for
// writing objects within one transaction (ostree-repo.h: "MT safe" since 2017.15).
// Errors: Failed (damaged or missing repository), NoSpace.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rasupd {

class Repo {
 public:
  /// The repository at `path` (usually SYSROOT/ostree/repo). Fails when there is none.
  static Result<Repo> open(const std::string& path);
  ~Repo();
  Repo(Repo&&) noexcept;
  Repo& operator=(Repo&&) noexcept;

  /// The commit a ref names, nullopt when there is no such ref.
  Result<std::optional<std::string>> resolve(const std::string& ref) const;
  /// All refs that begin with `prefix`: ref → commit.
  Result<std::map<std::string, std::string>> list_refs(const std::string& prefix) const;
  Result<bool> has_commit(const std::string& commit) const;
  /// A string ("s") member of a commit's metadata, nullopt when it has none.
  Result<std::optional<std::string>> metadata(const std::string& commit, const std::string& key) const;
  /// Points `ref` at `commit`, or removes it (nullopt), durably, outside any transaction.
  Result<void> set_ref(const std::string& ref, const std::optional<std::string>& commit);

  struct Body;
  Body& body() const { return *body_; }

 private:
  explicit Repo(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace rasupd
