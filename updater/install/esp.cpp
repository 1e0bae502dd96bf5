#include "install/esp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/files.hpp"
#include "base/text.hpp"
#include "install/filesystem.hpp"

namespace rasupd {
namespace {

constexpr const char* kDirectory = "usr/lib/systemd/boot/efi";
constexpr std::size_t kMaxProgram = 4 * 1024 * 1024;
constexpr const char* kLoaderConf = "timeout 0\nconsole-mode keep\neditor no\n";

/// UEFI specification 3.5.1.1, the machine's part of EFI/BOOT/BOOT….EFI.
std::string efi_name(std::string_view architecture) {
  if (architecture == "amd64") return "x64";
  if (architecture == "arm64") return "aa64";
  return std::string(architecture);
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

Result<std::string> read_leaf(const Repo& repo, const ObjectId& id, const std::string& name) {
  const LeafInfo info = TRY(repo.leaf(id));
  if (info.is_symlink || info.size > kMaxProgram)
    return fail(Kind::Unsuitable, name + " of the image is no boot program");
  const Reader content = TRY(repo.content(id));
  std::string bytes(info.size, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::span<std::byte> rest{reinterpret_cast<std::byte*>(bytes.data()) + done, bytes.size() - done};
    const std::size_t n = TRY(content(rest));
    if (n == 0) return fail(Kind::Failed, name + " of the image ends early");
    done += n;
  }
  return bytes;
}

/// A file of a commit, nullopt when there is none.
Result<std::optional<std::string>> read_from_commit(const Repo& repo, const std::string& commit,
                                                    const std::string& directory, const std::string& file) {
  DirectoryIds at = TRY(repo.root(commit));
  for (const std::string& part : split(directory, '/')) {
    const DirectoryListing listing = TRY(repo.list(at.tree));
    const auto next = std::find_if(listing.directories.begin(), listing.directories.end(),
                                   [&](const auto& one) { return one.first == part; });
    if (next == listing.directories.end()) return std::nullopt;
    at = next->second;
  }
  const DirectoryListing listing = TRY(repo.list(at.tree));
  for (const auto& [name, id] : listing.leaves) {
    if (name == file) return TRY(read_leaf(repo, id, directory + "/" + file));
  }
  return std::nullopt;
}

/// The one that firmware with Secure Boot starts comes first.
Result<std::string> find_program(const Repo& repo, const std::string& commit, const std::string& name) {
  for (const char* suffix : {".signed", ""}) {
    auto own = TRY(read_from_commit(repo, commit, kDirectory, name + suffix));
    if (own) return std::move(*own);
  }
  for (const char* suffix : {".signed", ""}) {
    auto host = TRY(read_file(fmt::format("/{}/{}{}", kDirectory, name, suffix), kMaxProgram));
    if (host) return std::move(*host);
  }
  return fail(Kind::Unsuitable, fmt::format("no {} in the image's /{} nor in this host's", name, kDirectory),
              "put Debian's package systemd-boot-efi into the image, or install it here");
}

}  // namespace

Result<void> put_systemd_boot(const Repo& repo, const std::string& commit, std::string_view architecture,
                              const std::string& tree) {
  const std::string machine = efi_name(architecture), name = "systemd-boot" + machine + ".efi";
  const std::string program = TRY(find_program(repo, commit, name));
  for (const char* folder : {"EFI/BOOT", "EFI/systemd", "loader/entries"})
    TRY(make_directories(path_join(tree, folder)));
  TRY(write_file_durably(path_join(tree, "EFI/BOOT/BOOT" + upper(machine) + ".EFI"), program, 0644));
  TRY(write_file_durably(path_join(tree, "EFI/systemd/" + name), program, 0644));
  return write_file_durably(path_join(tree, "loader/loader.conf"), kLoaderConf, 0644);
}

Result<void> fill_esp(Runner& runner, const std::string& device, const std::string& tree) {
  std::vector<std::string> words{"env", "MTOOLS_SKIP_CHECK=1", "mcopy", "-s", "-Q", "-m", "-i", device};
  const auto names = TRY(list_directory(tree));
  if (names.empty()) return {};
  for (const std::string& name : names) words.push_back(path_join(tree, name));
  words.push_back("::");
  const Outcome copied = TRY(runner.run(words, {std::chrono::minutes{10}}));
  if (copied.exit_code == 0) return {};
  const bool full = copied.err.find("full") != std::string::npos;
  return fail(full ? Kind::NoSpace : Kind::Failed,
              full ? "the EFI system partition is too small for kernel, initramfs and boot program"
                   : "mcopy failed: " + printable(trim(copied.err)),
              full ? "--esp-size takes a larger one" : "");
}

}  // namespace rasupd
