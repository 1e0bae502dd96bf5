#pragma once
// RepoWriter: one transaction on a repository. Objects become visible, and refs change, at commit() together,
// after everything was synced; a writer that is dropped leaves nothing but a staging directory that the next
// transaction of this boot uses again. Several writers of one repository may be open at once, each in its own
// thread. Errors: NoSpace (also libostree's min-free-space), Failed.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/handle.hpp"
#include "fence/repo.hpp"

namespace rasupd {

struct CommitSpec {
  DirectoryIds root;
  std::string subject;
  std::int64_t timestamp = 0;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::pair<std::string, std::vector<std::string>>> metadata_lists;
};

class RepoWriter {
 public:
  static Result<RepoWriter> begin(const Repo& repo);
  ~RepoWriter();
  RepoWriter(RepoWriter&&) noexcept;
  RepoWriter& operator=(RepoWriter&&) noexcept;

  /// True when the repository holds the file already, whole by its size. A file of another size is damage (a
  /// power cut on flash): it is removed, so that writing it again heals the repository.
  Result<bool> has_file(const ObjectId& id, std::uint64_t size);
  /// `id` is the caller's word: it must come from ObjectHash over the same attributes and content.
  Result<void> write_file(const ObjectId& id, const Attributes& attributes,
                          std::span<const std::byte> content);
  Result<void> write_file(const ObjectId& id, const Attributes& attributes, int fd, std::uint64_t size);
  Result<void> write_symlink(const ObjectId& id, const Attributes& attributes, const std::string& target);
  /// `attributes.mode` with S_IFDIR.
  Result<ObjectId> write_directory_attributes(const Attributes& attributes);
  /// Names need no order; they must be unique and valid UTF-8.
  Result<ObjectId> write_directory(DirectoryListing listing);
  Result<std::string> write_commit(const CommitSpec& spec);
  void set_ref(const std::string& ref, const std::string& commit);
  /// An unnamed file on the repository's file system, for content that does not fit in memory.
  Result<Fd> temporary() const;

  /// Syncs and publishes everything so far; the writer goes on with a new transaction.
  Result<void> commit();

  struct State;

 private:
  explicit RepoWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rasupd
