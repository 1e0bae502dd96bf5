#pragma once
// Repo: an ostree repository (bare mode) as the importer and the clean-up need it. Reading is here; writing
// objects is RepoWriter's (repo_writer.hpp). Methods may be called from several threads.
// Errors: Failed (damaged or missing repository), NoSpace.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/stream.hpp"
#include "fence/object.hpp"

namespace rasupd {

/// A directory object: its listing and its attributes.
struct DirectoryIds {
  ObjectId tree, meta;
};
/// What a directory lists. "leaf" is a file or a symlink: only the object itself tells which.
struct DirectoryListing {
  std::vector<std::pair<std::string, ObjectId>> leaves;
  std::vector<std::pair<std::string, DirectoryIds>> directories;
};
struct LeafInfo {
  Attributes attributes;
  bool is_symlink = false;
  std::string target;      ///< of a symlink
  std::uint64_t size = 0;  ///< of a file
};
struct PruneCount {
  std::uint64_t objects = 0, bytes = 0;
};

class Repo {
 public:
  /// The repository at `path` (usually SYSROOT/ostree/repo). Fails when there is none.
  static Result<Repo> open(const std::string& path);
  ~Repo();
  Repo(Repo&&) noexcept;
  Repo& operator=(Repo&&) noexcept;

  const std::string& path() const;
  /// The commit a ref names, nullopt when there is no such ref.
  Result<std::optional<std::string>> resolve(const std::string& ref) const;
  /// All refs that begin with `prefix`: ref → commit.
  Result<std::map<std::string, std::string>> list_refs(const std::string& prefix) const;
  Result<bool> has_commit(const std::string& commit) const;
  /// A string ("s") member of a commit's metadata, nullopt when it has none.
  Result<std::optional<std::string>> metadata(const std::string& commit, const std::string& key) const;
  /// A string list ("as") member of a commit's metadata, empty when it has none.
  Result<std::vector<std::string>> metadata_list(const std::string& commit, const std::string& key) const;
  /// Points `ref` at `commit`, or removes it (nullopt), durably, outside any transaction.
  Result<void> set_ref(const std::string& ref, const std::optional<std::string>& commit);

  /// The root directory of a commit.
  Result<DirectoryIds> root(const std::string& commit) const;
  Result<DirectoryListing> list(const ObjectId& tree) const;
  Result<Attributes> directory_attributes(const ObjectId& meta) const;
  Result<LeafInfo> leaf(const ObjectId& id) const;
  /// The content of a file object.
  Result<Reader> content(const ObjectId& id) const;

  /// Deletes every object that neither a ref nor a commit of `kept` reaches. Takes the exclusive lock.
  Result<PruneCount> prune(const std::vector<std::string>& kept);

  struct Body;
  Body& body() const { return *body_; }

 private:
  explicit Repo(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace rasupd
