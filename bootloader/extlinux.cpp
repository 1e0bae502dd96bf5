#include "bootloader/extlinux.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/detect.hpp"
#include "bootloader/entries.hpp"
#include "bootloader/entry_files.hpp"
#include "bootloader/kernel.hpp"

namespace rasupd::boot {
namespace extlinux {
namespace {

constexpr std::string_view kMark = "# rasupd-extlinux ";
constexpr const char* kConfig = "boot/extlinux/extlinux.conf";
constexpr const char* kLink = "../loader/extlinux.conf";
constexpr const char* kMenu = "extlinux.conf";  // in loader.N
constexpr std::size_t kMaxMenu = 1u << 20;

/// Seen from boot/extlinux.
std::string relative(const std::string& path) {
  return ".." + below_boot(path);
}

/// U-Boot expands variables in `append` (cli_simple_process_macros()): a backslash takes the meaning away.
std::string append_text(std::string_view options) {
  std::string out;
  for (const char c : one_line(options)) {
    if (c == '$' || c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// Device trees lie beside the kernel: a file `devicetree` or a directory `dtb`, as libostree copies them.
Result<std::string> device_tree_line(const std::string& sysroot, const Entry& entry) {
  if (entry.deployment.empty()) return std::string();
  const std::string deployment = fmt::format("ostree/deploy/{}/deploy/{}", entry.stateroot, entry.deployment);
  const auto files = TRY(find_kernel_files(path_join(sysroot, deployment)));
  if (!files) return std::string();
  const std::string modules = files->kernel.substr(0, files->kernel.rfind('/'));
  const std::string folder = relative(entry.kernel.substr(0, entry.kernel.rfind('/')));
  if (exists(path_join(modules, "devicetree"))) {
    return fmt::format("  FDT {}/devicetree-{}\n", folder, files->version);
  }
  if (exists(path_join(modules, "dtb"))) return fmt::format("  FDTDIR {}/dtb\n", folder);
  return std::string();
}

/// The lines that decide what boots: titles are for people.
std::vector<std::string> booting_lines(std::string_view menu) {
  std::vector<std::string> out;
  for (std::string& line : split(menu, '\n')) {
    if (!line.starts_with('#') && !line.starts_with("  MENU LABEL")) out.push_back(std::move(line));
  }
  return out;
}

Result<std::string> current_menu(const std::string& sysroot) {
  const auto text = TRY(read_file(path_join(sysroot, kConfig), kMaxMenu, Kind::Boot));
  return text.value_or("");
}

}  // namespace

Result<bool> is_installed(const std::string& sysroot) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(path_join(sysroot, kConfig), error);
  if (error || target != kLink) return false;
  const std::string text = TRY(current_menu(sysroot));
  return text.empty() || text.starts_with(kMark);
}

Result<void> write_static_files(const std::string& sysroot) {
  if (TRY(is_installed(sysroot))) return {};
  TRY(make_directories(path_join(sysroot, "boot/extlinux")));
  const std::string path = path_join(sysroot, kConfig);
  if (::symlink(kLink, path.c_str()) != 0) {
    if (errno != EEXIST) return fail_errno(errno, "making the link " + path);
    return fail(Kind::Boot, path + " is another program's", "move it away");
  }
  return fsync_directory(path_join(sysroot, "boot/extlinux"));
}

std::string label(const std::string& deployment) {
  return "rasupd-" + deployment;
}

Result<std::string> menu_text(const std::string& sysroot, const std::vector<Entry>& entries) {
  std::string out =
      fmt::format("{}1\n# Made from the boot entries beside this file, anew at every change.\n", kMark);
  if (!entries.empty()) out += fmt::format("DEFAULT {}\n", label(entries.front().deployment));
  out += "PROMPT 0\nTIMEOUT 10\n";
  for (const Entry& entry : entries) {
    out += fmt::format("LABEL {}\n  MENU LABEL {}\n  KERNEL {}\n", label(entry.deployment),
                       one_line(entry.title), relative(entry.kernel));
    if (!entry.initrd.empty()) out += fmt::format("  INITRD {}\n", relative(entry.initrd));
    out += TRY(device_tree_line(sysroot, entry));
    out += fmt::format("  APPEND {}\n", append_text(entry.options));
  }
  return out;
}

Result<void> prepare_menu(const std::string& sysroot, const Next& next) {
  const std::string menu = loader_file(sysroot, next.boot_version, kMenu);
  const std::string text = TRY(menu_text(sysroot, next.entries));
  TRY(make_directories(menu.substr(0, menu.rfind('/'))));
  TRY(write_file_durably(menu, text, 0644));
  return failpoint("extlinux-menu-written");
}

Result<std::vector<std::string>> finish_menu(const std::string& sysroot, const Menu& before,
                                             const Next& next) {
  std::vector<std::string> lost = carry_foreign(sysroot, before);
  std::vector<Entry> entries = TRY(resolved_entries(sysroot));
  take_titles(entries, next);
  // As a rule the menu is the prepared one. Not when libostree only flipped boot.N, or wrote more than
  // foreseen.
  const std::string text = TRY(menu_text(sysroot, entries));
  if (TRY(current_menu(sysroot)) == text) return lost;
  const unsigned version = TRY(current_boot_version(sysroot));
  TRY(write_file_durably(loader_file(sysroot, version, kMenu), text, 0644));
  return lost;
}

Result<bool> in_step(const std::string& sysroot) {
  const std::vector<Entry> entries = TRY(resolved_entries(sysroot));
  if (entries.empty()) return true;
  const std::string text = TRY(menu_text(sysroot, entries));
  return booting_lines(TRY(current_menu(sysroot))) == booting_lines(text);
}

Result<void> verify_menu(const std::string& sysroot, const std::string& directory) {
  TRY(verify_entries(sysroot, directory));
  if (!TRY(in_step(sysroot)))
    return differs(std::string(kConfig) + " does not say what the boot entries say");
  return {};
}

namespace {

class Extlinux : public Bootloader {
 public:
  explicit Extlinux(std::string sysroot) : sysroot_(std::move(sysroot)) {}

  std::string_view name() const override { return "extlinux"; }
  Counting counting() const override { return Counting::none; }
  Result<Menu> read() const override { return read_menu(sysroot_); }
  Result<void> prepare(const Next& next) override {
    TRY(prepare_menu(sysroot_, next));
    return settle();
  }
  Result<std::vector<std::string>> finish(const Menu& before, const Next& next) override {
    auto lost = TRY(finish_menu(sysroot_, before, next));
    TRY(settle());
    return lost;
  }
  Result<void> verify(const std::string& directory) const override {
    return verify_menu(sysroot_, directory);
  }
  Result<std::optional<Trial>> trial() const override { return std::optional<Trial>{}; }
  Result<void> end_trial() override { return {}; }
  Result<bool> in_step() const override { return extlinux::in_step(sysroot_); }

 private:
  /// U-Boot reads the disk as it is, without the journal.
  Result<void> settle() const {
    return settle_for_boot(sysroot_, path_join(sysroot_, "boot"));
  }

  std::string sysroot_;
};

}  // namespace
}  // namespace extlinux

std::unique_ptr<Bootloader> make_extlinux(std::string sysroot) {
  return std::make_unique<extlinux::Extlinux>(std::move(sysroot));
}

}  // namespace rasupd::boot
