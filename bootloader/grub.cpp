#include "bootloader/grub.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/detect.hpp"
#include "bootloader/entries.hpp"
#include "bootloader/entry_files.hpp"

namespace rasupd::boot {
namespace grub {
namespace {

constexpr std::string_view kMark = "# rasupd-grub ";
constexpr const char* kConfig = "boot/grub/grub.cfg";
constexpr const char* kEnvironment = "boot/grub/grubenv";
constexpr const char* kMenu = "grub.cfg";  // in loader.N
/// A menu has a few entries of at most a few KiB; a foreign grub.cfg may be larger and is then not ours.
constexpr std::size_t kMaxMenu = 1u << 20;

Result<void> write_in_place(const std::string& path, const std::string& block) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno(errno, "opening " + path);
  if (::pwrite(fd.get(), block.data(), block.size(), 0) != static_cast<ssize_t>(block.size()) ||
      ::ftruncate(fd.get(), static_cast<off_t>(block.size())) != 0 || ::fsync(fd.get()) != 0) {
    return fail_errno(errno, "writing " + path);
  }
  return {};
}

/// The lines of a menu that decide what boots: titles are for people.
std::vector<std::string> booting_lines(std::string_view menu) {
  std::vector<std::string> out;
  for (std::string& line : split(menu, '\n')) {
    if (line.starts_with("  linux ") || line.starts_with("  initrd ")) out.push_back(std::move(line));
  }
  return out;
}

}  // namespace

Result<bool> is_installed(const std::string& sysroot) {
  const auto text = TRY(read_file(path_join(sysroot, kConfig), kMaxMenu, Kind::Boot));
  return text && text->starts_with(kMark);
}

Result<void> write_static_files(const std::string& sysroot, bool separate_boot) {
  TRY(make_directories(path_join(sysroot, "boot/grub")));
  const std::string environment = path_join(sysroot, kEnvironment);
  if (!exists(environment)) TRY(write_in_place(environment, environment_text(std::nullopt)));
  return write_file_durably(path_join(sysroot, kConfig), static_config(separate_boot), 0644);
}

class Grub : public Bootloader {
 public:
  explicit Grub(std::string sysroot) : sysroot_(std::move(sysroot)) {}

  std::string_view name() const override { return "grub"; }
  Counting counting() const override { return Counting::tries; }
  Result<Menu> read() const override { return read_menu(sysroot_); }

  Result<void> prepare(const Next& next) override {
    const std::string menu = loader_file(sysroot_, next.boot_version, kMenu);
    TRY(make_directories(menu.substr(0, menu.rfind('/'))));
    TRY(write_file_durably(menu, text_of(next.entries, next), 0644));
    TRY(failpoint("menu-written"));
    if (next.trial) {
      // Counts nothing before the menu that names it is the one GRUB reads.
      TRY(write_in_place(path_join(sysroot_, kEnvironment), environment_text(next.trial)));
      TRY(failpoint("trial-armed"));
    }
    return settle();
  }

  Result<std::vector<std::string>> finish(const Menu& before, const Next& next) override {
    std::vector<std::string> lost = carry_foreign(sysroot_, before);
    // As a rule the menu is the prepared one. Not when libostree only flipped boot.N, or wrote more than foreseen.
    std::vector<Entry> entries = TRY(resolved_entries(sysroot_));
    take_titles(entries, next);
    TRY(write_current_menu(text_of(entries, next)));
    if (!next.trial) TRY(clear_counter());
    TRY(settle());
    return lost;
  }

  Result<void> verify(const std::string& directory) const override {
    TRY(verify_entries(sysroot_, directory));
    if (!TRY(in_step())) return differs("boot/loader/grub.cfg does not say what the boot entries say");
    return {};
  }

  Result<std::optional<Trial>> trial() const override {
    const std::string named = trial_of_menu(TRY(current_menu()));
    if (named.empty()) return std::optional<Trial>{};
    const auto block = TRY(read_file(path_join(sysroot_, kEnvironment), kMaxMenu, Kind::Boot));
    auto counter = TRY(parse_environment(block.value_or("")));
    // GRUB takes a counter that is not the menu's for an exhausted one.
    if (!counter || counter->deployment != named) counter = Trial{named, 0};
    return counter;
  }

  Result<void> end_trial() override {
    std::string menu = TRY(current_menu());
    const std::string named = trial_of_menu(menu);
    if (!named.empty()) {
      std::vector<std::string> kept;
      for (std::string& line : split(menu, '\n')) {
        if (trial_of_menu(line).empty()) kept.push_back(std::move(line));
      }
      TRY(write_current_menu(join(kept, "\n")));
      TRY(failpoint("trial-menu-cleared"));
    }
    TRY(clear_counter());
    return settle();
  }

  Result<bool> in_step() const override {
    const std::vector<Entry> entries = TRY(resolved_entries(sysroot_));
    return booting_lines(TRY(current_menu())) == booting_lines(menu_text(entries, ""));
  }

 private:
  static std::string text_of(const std::vector<Entry>& entries, const Next& next) {
    return menu_text(entries, next.trial ? next.trial->deployment : "");
  }

  Result<std::string> current_menu() const {
    const auto text = TRY(read_file(path_join(sysroot_, "boot/loader/grub.cfg"), kMaxMenu, Kind::Boot));
    return text.value_or("");
  }

  Result<void> write_current_menu(const std::string& text) {
    if (TRY(current_menu()) == text) return {};
    const unsigned version = TRY(current_boot_version(sysroot_));
    return write_file_durably(loader_file(sysroot_, version, kMenu), text, 0644);
  }

  Result<void> clear_counter() {
    const std::string path = path_join(sysroot_, kEnvironment);
    const std::string empty = environment_text(std::nullopt);
    const auto block = read_file(path, kMaxMenu, Kind::Boot);
    if (block && *block && **block == empty) return {};
    return write_in_place(path, empty);
  }

  /// GRUB reads the disk as it is, without the journal. Only where GRUB may be the next to read.
  Result<void> settle() const {
    return settle_for_boot(sysroot_, path_join(sysroot_, "boot"));
  }

  std::string sysroot_;
};

}  // namespace grub

std::unique_ptr<Bootloader> make_grub(std::string sysroot) {
  return std::make_unique<grub::Grub>(std::move(sysroot));
}

}  // namespace rasupd::boot
