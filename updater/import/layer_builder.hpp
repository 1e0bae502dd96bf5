#pragma once
// LayerBuilder: the entries of one layer's tar into objects and a tree, in archive order. Later entries win,
// nothing is ever written outside the tree. It knows nothing of other layers.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/stream.hpp"
#include "fence/repo_writer.hpp"
#include "fence/tar.hpp"
#include "import/tree.hpp"

namespace rasupd {

struct LayerTree {
  Node root;
  /// Hardlinks whose target this layer does not have: (path, target), resolved when layers are merged.
  std::vector<std::pair<std::string, std::string>> foreign_links;
  std::uint64_t dropped = 0;
};

class LayerBuilder {
 public:
  /// `max_bytes` bounds the content of all files together (holes of sparse files count).
  LayerBuilder(RepoWriter& writer, std::uint64_t max_bytes) : writer_(writer), budget_(max_bytes) {}

  Result<void> begin();
  /// `content` is the entry's content, read only for files.
  Result<void> add(const TarEntry& entry, const Reader& content);
  /// Resolves the links that could not be when they came (forward, chained).
  Result<LayerTree> finish();

 private:
  struct Place {
    Children* directory = nullptr;
    std::string name;
  };
  Result<ObjectId> meta_of(const Attributes& attributes);
  Result<std::vector<std::string>> settled_path(std::string_view written);
  Result<Place> place(const std::vector<std::string>& path);
  Result<void> add_directory(const std::vector<std::string>& path, const Attributes& attributes);
  Result<void> add_leaf(const std::vector<std::string>& path, const ObjectId& id);
  Result<ObjectId> store_symlink(const Attributes& attributes, const std::string& target);
  Result<ObjectId> store_file(const Attributes& attributes, std::uint64_t size, const Reader& content);
  Result<ObjectId> store_large_file(const Attributes& attributes, std::uint64_t size, const Reader& content);
  Result<ObjectId> store_empty_file();
  Result<void> add_hardlink(const std::vector<std::string>& path, const TarEntry& entry);
  Result<void> add_special(std::vector<std::string> path, const TarEntry& entry);
  Result<void> resolve_link(const std::string& path, const std::string& target);

  RepoWriter& writer_;
  std::uint64_t budget_;
  std::uint64_t entries_ = 0;
  LayerTree tree_;
  std::map<Attributes, ObjectId> metas_;
  /// Targets of this layer's symlinks by object, to look through one without reading it back.
  std::map<ObjectId, std::string> targets_;
  std::map<std::string, std::string> pending_links_;  ///< path → target, both in tree form
  std::vector<std::byte> buffer_;
};

}  // namespace rasupd
