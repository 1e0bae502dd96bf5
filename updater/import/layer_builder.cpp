#include "import/layer_builder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"
#include "import/entry_rules.hpp"

namespace rasupd {
namespace {

/// Files up to this size are held in memory, so that what the repository has is never written. Each worker
/// holds one; 4 MiB covers all but kernel, initramfs and a few libraries.
constexpr std::size_t kInMemory = 4u << 20;
constexpr std::size_t kSpoolBlock = 256 * 1024;

Attributes attributes_of(const TarEntry& entry, std::uint32_t type) {
  return Attributes{entry.uid, entry.gid, type | entry.permissions, {}};
}

tl::unexpected<Error> short_content() {
  return fail(Kind::Untrusted, "tar: the content is shorter than its header says");
}

/// Fills `out` completely.
Result<void> read_exactly(const Reader& content, std::span<std::byte> out) {
  while (!out.empty()) {
    const std::size_t n = TRY(content(out));
    if (n == 0) return short_content();
    out = out.subspan(n);
  }
  return {};
}

Result<void> write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, "writing a temporary file in the repository");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> check_room(int fd, std::uint64_t size) {
  struct statvfs info {};
  if (::fstatvfs(fd, &info) != 0) return fail_errno(errno, "asking for free space");
  const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
  if (size <= free) return {};
  return fail(Kind::NoSpace, fmt::format("the repository's file system: a file needs {}, {} are free",
                                         human_size(size), human_size(free)));
}

}  // namespace

Result<void> LayerBuilder::begin() {
  tree_.root = Node::directory_of(TRY(meta_of({0, 0, S_IFDIR | 0755, {}})), true);
  return {};
}

Result<ObjectId> LayerBuilder::meta_of(const Attributes& attributes) {
  if (const auto known = metas_.find(attributes); known != metas_.end()) return known->second;
  const ObjectId id = TRY(writer_.write_directory_attributes(attributes));
  metas_.emplace(attributes, id);
  return id;
}

/// The path with relative links of this layer among its parents looked through: tools that concatenate
/// package tars write `bin -> usr/bin` and then bin/x. A link that is absolute or climbs out is an attack
/// here.
Result<std::vector<std::string>> LayerBuilder::settled_path(std::string_view written) {
  auto path = TRY(tree_path(written));
  if (path.empty()) return path;
  const std::string name = path.back();
  path.pop_back();
  Node* at = &tree_.root;
  for (const std::string& parent : path) {
    if (at) at = at->child(parent);
    if (at && !at->is_directory()) break;
  }
  if (at && !at->is_directory()) {
    const TargetOf target_of = [this](const ObjectId& id) -> Result<std::optional<std::string>> {
      const auto it = targets_.find(id);
      return it == targets_.end() ? std::nullopt : std::optional(it->second);
    };
    auto real = TRY(real_path(tree_.root, path, target_of, false));
    if (!real) return fail(Kind::Untrusted, "an entry lies beneath a file");
    path = std::move(*real);
  }
  path.push_back(name);
  // Links can lead deeper than the name that was written.
  if (path.size() > kMaxDepth) return fail(Kind::Untrusted, "nested too deeply");
  return path;
}

/// The directory that holds `path`'s last name; missing parents are made, root's and 0755.
Result<LayerBuilder::Place> LayerBuilder::place(const std::vector<std::string>& path) {
  Node* at = &tree_.root;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    Node* next = at->child(path[i]);
    if (!next) {
      if (++entries_ > kMaxEntries) return fail(Kind::Untrusted, "more entries than any system has");
      Node made = Node::directory_of(TRY(meta_of({0, 0, S_IFDIR | 0755, {}})), true);
      next = &at->children->emplace(path[i], std::move(made)).first->second;
    }
    if (!next->is_directory()) return fail(Kind::Untrusted, "an entry lies beneath a file");
    at = next;
  }
  return Place{at->children.get(), path.back()};
}

Result<void> LayerBuilder::add_directory(const std::vector<std::string>& path, const Attributes& attributes) {
  const ObjectId meta = TRY(meta_of(attributes));
  if (path.empty()) {
    tree_.root.id = meta;
    tree_.root.implied = false;
    return {};
  }
  pending_links_.erase(join(path, "/"));
  const Place at = TRY(place(path));
  Node& node = (*at.directory)[at.name];
  if (!node.is_directory()) node = Node::directory_of(meta, false);
  node.id = meta;
  node.implied = false;
  return {};
}

Result<void> LayerBuilder::add_leaf(const std::vector<std::string>& path, const ObjectId& id) {
  if (path.empty()) return fail(Kind::Untrusted, "the root of the layer is not a directory");
  pending_links_.erase(join(path, "/"));
  const Place at = TRY(place(path));
  at.directory->insert_or_assign(at.name, Node::leaf_of(id));
  return {};
}

Result<ObjectId> LayerBuilder::store_symlink(const Attributes& attributes, const std::string& target) {
  if (target.empty() || target.size() >= kMaxPath)
    return fail(Kind::Untrusted, "a symlink of no or overlong target");
  if (!is_utf8(target)) return fail(Kind::Unsuitable, "the target of the symlink is not UTF-8");
  const ObjectId id = ObjectHash(attributes, target).finish();
  targets_.emplace(id, target);
  const bool have = TRY(writer_.has_file(id, 0));
  if (!have) TRY(writer_.write_symlink(id, attributes, target));
  return id;
}

Result<ObjectId> LayerBuilder::store_file(const Attributes& attributes, std::uint64_t size,
                                          const Reader& content) {
  if (size > budget_) {
    return fail(Kind::Untrusted, "the layer unpacks to more than its size allows",
                "it may be a decompression bomb");
  }
  budget_ -= size;
  if (size > kInMemory) return store_large_file(attributes, size, content);
  if (buffer_.size() < size) buffer_.resize(size);
  const auto bytes = std::span(buffer_).first(size);
  TRY(read_exactly(content, bytes));
  ObjectHash hash(attributes, "");
  hash.update(bytes);
  const ObjectId id = hash.finish();
  const bool have = TRY(writer_.has_file(id, size));
  if (!have) TRY(writer_.write_file(id, attributes, bytes));
  return id;
}

Result<ObjectId> LayerBuilder::store_large_file(const Attributes& attributes, std::uint64_t size,
                                                const Reader& content) {
  const Fd spool = TRY(writer_.temporary());
  TRY(check_room(spool.get(), size));
  if (buffer_.size() < kSpoolBlock) buffer_.resize(kSpoolBlock);
  ObjectHash hash(attributes, "");
  for (std::uint64_t left = size; left != 0;) {
    const auto block = std::span(buffer_).first(std::min<std::uint64_t>(left, kSpoolBlock));
    TRY(read_exactly(content, block));
    hash.update(block);
    TRY(write_all(spool.get(), block));
    left -= block.size();
  }
  const ObjectId id = hash.finish();
  const bool have = TRY(writer_.has_file(id, size));
  if (!have) TRY(writer_.write_file(id, attributes, spool.get(), size));
  return id;
}

Result<ObjectId> LayerBuilder::store_empty_file() {
  return store_file({0, 0, S_IFREG | 0644, {}}, 0, Reader());
}

Result<void> LayerBuilder::add_hardlink(const std::vector<std::string>& path, const TarEntry& entry) {
  if (entry.size != 0) return fail(Kind::Untrusted, "a hardlink with content of its own");
  if (path.empty()) return fail(Kind::Untrusted, "the root of the layer is not a directory");
  std::vector<std::string> target = TRY(settled_path(entry.link));
  if (target.empty() || target == path)
    return fail(Kind::Untrusted, "a hardlink to a directory or to itself");
  const Node* there = find_node(tree_.root, target);
  if (there && there->is_directory()) return fail(Kind::Untrusted, "a hardlink to a directory");
  const std::string text = join(target, "/");
  if (there && !pending_links_.contains(text)) return add_leaf(path, ObjectId(there->id));
  // A stand-in keeps the order of entries true: whatever comes later under this name replaces it.
  TRY(add_leaf(path, ObjectId{}));
  pending_links_[join(path, "/")] = text;
  return {};
}

Result<void> LayerBuilder::add_special(std::vector<std::string> path, const TarEntry& entry) {
  // overlayfs writes a whiteout as a character device 0:0 (kernel, filesystems/overlayfs.rst).
  if (entry.type == TarEntry::Type::character && entry.device == 0 && !path.empty()) {
    path.back().insert(0, kWhiteoutPrefix);
    TRY(mark_of(path.back()));
    return add_leaf(path, TRY(store_empty_file()));
  }
  return fail(Kind::Unsuitable, "a device, fifo or socket, which an ostree commit cannot hold",
              "remove it from the image; systemd-tmpfiles can create it at boot");
}

Result<void> LayerBuilder::add(const TarEntry& entry, const Reader& content) {
  using Type = TarEntry::Type;
  if (++entries_ > kMaxEntries) return fail(Kind::Untrusted, "more entries than any system has");
  const auto path = TRY(settled_path(entry.path));
  if (is_dropped(path)) {
    ++tree_.dropped;
    return {};
  }
  const Mark mark = path.empty() ? Mark::none : TRY(mark_of(path.back()));
  if (mark != Mark::none) {
    if (mark == Mark::ignored) return {};
    if (entry.type != Type::file && entry.type != Type::hardlink) {
      return fail(Kind::Untrusted, "a whiteout that is not a file");
    }
    return add_leaf(path, TRY(store_empty_file()));
  }
  for (const std::string& name : path) {
    if (name.starts_with(kWhiteoutPrefix)) return fail(Kind::Untrusted, "an entry beneath a whiteout");
  }
  if (entry.type == Type::hardlink) return add_hardlink(path, entry);
  auto xattrs = TRY(kept_xattrs(entry.xattrs));
  if (entry.type == Type::directory) {
    Attributes attributes = attributes_of(entry, S_IFDIR);
    attributes.xattrs = std::move(xattrs);
    return add_directory(path, attributes);
  }
  if (entry.type == Type::symlink) {
    // Links have no permissions of their own; libostree and every file system show 0777.
    Attributes attributes{entry.uid, entry.gid, S_IFLNK | 0777, std::move(xattrs)};
    return add_leaf(path, TRY(store_symlink(attributes, entry.link)));
  }
  if (entry.type == Type::file) {
    Attributes attributes = attributes_of(entry, S_IFREG);
    attributes.xattrs = std::move(xattrs);
    return add_leaf(path, TRY(store_file(attributes, entry.size, content)));
  }
  return add_special(path, entry);
}

/// Follows the chain of pending links from `path` to a file of this layer, or to a name it does not have.
Result<void> LayerBuilder::resolve_link(const std::string& path, const std::string& target) {
  std::string at = target;
  std::size_t steps = 0;
  for (auto it = pending_links_.find(at); it != pending_links_.end(); it = pending_links_.find(at)) {
    if (++steps > pending_links_.size())
      return fail(Kind::Untrusted, "hardlinks in a circle: " + printable(path));
    at = it->second;
  }
  const Node* there = find_node(tree_.root, path_names(at));
  if (there && there->is_directory())
    return fail(Kind::Untrusted, "a hardlink to a directory: " + printable(path));
  const Place place_of = TRY(place(path_names(path)));
  if (there) {
    place_of.directory->insert_or_assign(place_of.name, Node::leaf_of(ObjectId(there->id)));
  } else {
    place_of.directory->erase(place_of.name);
    tree_.foreign_links.emplace_back(path, at);
  }
  return {};
}

Result<LayerTree> LayerBuilder::finish() {
  // A stand-in whose directory was replaced since is no link any more.
  std::erase_if(pending_links_, [this](const auto& link) {
    const Node* node = find_node(tree_.root, path_names(link.first));
    return !node || node->is_directory() || node->id != ObjectId{};
  });
  for (const auto& [path, target] : pending_links_) TRY(resolve_link(path, target));
  return std::move(tree_);
}

}  // namespace rasupd
