#include "install/esp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/files.hpp"
#include "base/text.hpp"
#include "import/commit_path.hpp"
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

/// The one that firmware with Secure Boot starts comes first.
Result<std::string> find_program(const Repo& repo, const std::string& commit, const std::string& name) {
  for (const char* suffix : {".signed", ""}) {
    auto own = TRY(read_at(repo, commit, split(kDirectory, '/'), name + suffix, kMaxProgram));
    if (own) return std::move(*own);
  }
  for (const char* suffix : {".signed", ""}) {
    auto host = TRY(read_file(fmt::format("/{}/{}{}", kDirectory, name, suffix), kMaxProgram));
    if (host) return std::move(*host);
  }
  return fail(Kind::Unsuitable, fmt::format("no {} in the image's /{} nor in this host's", name, kDirectory),
              "put Debian's package systemd-boot-efi into the image, or install it here");
}

/// On an ESP that other systems share, their way of starting stays theirs.
Result<void> write_if_missing(const std::string& path, std::string_view content) {
  return exists(path) ? Result<void>{} : write_file_durably(path, content, 0644);
}

}  // namespace

Result<void> put_systemd_boot(const Repo& repo, const std::string& commit, std::string_view architecture,
                              const std::string& tree) {
  const std::string machine = efi_name(architecture), name = "systemd-boot" + machine + ".efi";
  const std::string program = TRY(find_program(repo, commit, name));
  for (const char* folder : {"EFI/BOOT", "EFI/systemd", "loader/entries"})
    TRY(make_directories(path_join(tree, folder)));
  TRY(write_file_durably(path_join(tree, "EFI/systemd/" + name), program, 0644));
  TRY(write_if_missing(path_join(tree, "EFI/BOOT/BOOT" + upper(machine) + ".EFI"), program));
  return write_if_missing(path_join(tree, "loader/loader.conf"), kLoaderConf);
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
