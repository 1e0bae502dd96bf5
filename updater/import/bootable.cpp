#include <fmt/format.h>

#include "base/text.hpp"
#include "import/commit_path.hpp"
#include "import/import.hpp"

namespace rasupd {
namespace {

template <class List>
auto* named(List& list, std::string_view name) {
  for (auto& [entry, value] : list) {
    if (entry == name) return &value;
  }
  return static_cast<decltype(&list.front().second)>(nullptr);
}

tl::unexpected<Error> not_bootable(std::string why) {
  return fail(Kind::Unsuitable, "the image is not bootable: " + std::move(why));
}

/// Size of the file `name` in a modules directory; 0 when it is missing, empty or no file.
Result<std::uint64_t> file_size(const Repo& repo, const DirectoryListing& directory, std::string_view name) {
  const ObjectId* id = named(directory.leaves, name);
  if (!id) return std::uint64_t{0};
  const LeafInfo info = TRY(repo.leaf(*id));
  return info.is_symlink ? std::uint64_t{0} : info.size;
}

Result<void> check_layout(const Repo& repo, const std::string& commit) {
  const auto root = TRY(list_at(repo, commit, {}));
  if (!named(root->directories, "sysroot")) return not_bootable("/sysroot is not a directory");
  if (named(root->leaves, "boot")) return not_bootable("/boot is not a directory");
  const auto boot = TRY(list_at(repo, commit, {"boot"}));
  if (boot && !(boot->leaves.empty() && boot->directories.empty())) {
    const std::string& first = boot->leaves.empty() ? boot->directories[0].first : boot->leaves[0].first;
    return not_bootable(fmt::format("/boot is not empty (it has {})", printable(first, 80)));
  }
  if (named(root->directories, "etc") && TRY(list_at(repo, commit, {"usr", "etc"}))) {
    return not_bootable("it has both /etc and /usr/etc");
  }
  return {};
}

}  // namespace

Result<void> check_bootable_label(const ImageConfig& config) {
  if (config.labels.contains("containers.bootc") || config.labels.contains("ostree.bootable")) return {};
  return fail(Kind::Unsuitable,
              "the image is not bootable: it has neither the label containers.bootc nor ostree.bootable",
              "build it from a bootable base, or add: LABEL containers.bootc 1");
}

Result<KernelInfo> find_kernel(const Repo& repo, const std::string& commit) {
  const auto modules = TRY(list_at(repo, commit, {"usr", "lib", "modules"}));
  if (!modules) return not_bootable("there is no /usr/lib/modules");
  KernelInfo found;
  for (const auto& [version, ids] : modules->directories) {
    const DirectoryListing directory = TRY(repo.list(ids.tree));
    if (!named(directory.leaves, "vmlinuz")) continue;
    if (!found.version.empty()) {
      return not_bootable(
          fmt::format("it has two kernels, {} and {}", printable(found.version, 80), printable(version, 80)));
    }
    const std::uint64_t kernel = TRY(file_size(repo, directory, "vmlinuz"));
    const std::uint64_t initramfs = TRY(file_size(repo, directory, "initramfs.img"));
    const std::string place = "/usr/lib/modules/" + printable(version, 80);
    if (kernel == 0) return not_bootable(place + "/vmlinuz is empty or no file");
    if (initramfs == 0) return not_bootable(place + "/initramfs.img is missing, empty or no file");
    found = {version, kernel + initramfs};
  }
  if (found.version.empty()) return not_bootable("there is no /usr/lib/modules/*/vmlinuz");
  return found;
}

Result<void> check_bootable(const Repo& repo, const std::string& commit) {
  TRY(find_kernel(repo, commit));
  return check_layout(repo, commit);
}

}  // namespace rasupd
