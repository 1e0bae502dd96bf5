// systemd-boot reads the EFI system partition alone, so kernels and entries are mirrored there. There are no
// links on VFAT: the switch is one rename, that of the new default's entry, whose number is higher than all
// others'. Starts of a trial are counted in its file name (systemd.io, "Automatic Boot Assessment").

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "bootloader/detect.hpp"
#include "bootloader/entries.hpp"
#include "bootloader/entry_files.hpp"
#include "bootloader/esp.hpp"
#include "bootloader/kernel.hpp"

namespace rasupd::boot {
namespace {

using esp::EspEntry;
using esp::EspMenu;

/// Do two entries start the same thing? The paths of today's loader/entries may carry /boot, the ESP's never
/// do.
bool same_start(const Entry& a, const Entry& b) {
  return below_boot(a.kernel) == below_boot(b.kernel) &&
         below_boot(a.initrd) == below_boot(b.initrd) && a.options == b.options &&
         a.deployment == b.deployment;
}

class SystemdBoot : public Bootloader {
 public:
  SystemdBoot(std::string sysroot, std::string esp) : sysroot_(std::move(sysroot)), esp_(std::move(esp)) {}

  std::string_view name() const override { return "systemd-boot"; }
  Counting counting() const override { return Counting::tries; }
  Result<Menu> read() const override { return read_menu(sysroot_); }

  Result<void> check_space(std::uint64_t bytes) const override {
    const esp::Space space = TRY(esp::space_for(esp_, {bytes}));
    return esp::check_space(esp_, space);
  }

  Result<void> prepare(const Next& next) override {
    TRY(refuse_overridden(esp::file_name(0, std::nullopt)));
    TRY(repoint());
    TRY(esp::remove_unused(esp_, next.entries));
    TRY(copy_kernels(next.entries));
    return settle();
  }

  Result<std::vector<std::string>> finish(const Menu& before, const Next& next) override {
    std::vector<std::string> lost = carry_foreign(sysroot_, before);
    std::vector<Entry> entries = TRY(resolved_entries(sysroot_));
    take_titles(entries, next);
    // As a rule they are there. Not when libostree wrote more than foreseen.
    TRY(copy_kernels(entries));
    TRY(mirror(entries, next.trial ? std::optional(next.trial->left) : std::nullopt));
    TRY(esp::remove_unused(esp_, entries));
    TRY(settle());
    return lost;
  }

  Result<void> verify(const std::string& directory) const override {
    TRY(verify_entries(sysroot_, directory));
    if (!TRY(in_step()))
      return differs("the entries in " + entries_directory() + " do not say what the boot entries say");
    const EspMenu menu = TRY(esp::read_esp(esp_));
    if (menu.ours.empty()) return differs("no entries of ours in " + entries_directory());
    TRY(refuse_overridden(menu.ours.front().entry.file));
    for (const esp::Copy& copy : TRY(esp::copies(sysroot_, esp_, {menu.ours.front().entry}))) {
      if (!exists(copy.to)) return differs(copy.to + " is missing");
      if (!TRY(same_content(copy.from, copy.to)))
        return differs(fmt::format("{} differs from {}", copy.to, copy.from));
    }
    return {};
  }

  Result<std::optional<Trial>> trial() const override {
    const EspMenu menu = TRY(esp::read_esp(esp_));
    if (menu.ours.empty() || !menu.ours.front().left) return std::optional<Trial>{};
    const EspEntry& first = menu.ours.front();
    if (first.entry.deployment.empty()) {
      return fail(Kind::Boot,
                  fmt::format("{}/{} counts starts, but does not say of which deployment",
                              entries_directory(), first.entry.file),
                  "`rasupd rollback` or a new upgrade writes the entries anew");
    }
    Trial trial;
    trial.deployment = first.entry.deployment;
    trial.left = *first.left;
    return std::optional<Trial>{std::move(trial)};
  }

  /// What systemd-bless-boot does; the one that comes second finds nothing to do.
  Result<void> end_trial() override {
    const EspMenu menu = TRY(esp::read_esp(esp_));
    for (const EspEntry& ours : menu.ours) {
      if (!ours.left) continue;
      const std::string from = entry_path(ours.entry.file),
                        to = entry_path(esp::file_name(ours.number, std::nullopt));
      if (::rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT)
        return fail_errno(errno, "renaming " + from);
    }
    TRY(fsync_directory(entries_directory()));
    TRY(failpoint("esp-trial-ended"));
    return settle();
  }

  Result<bool> in_step() const override {
    return is_mirror(TRY(esp::read_esp(esp_)), TRY(resolved_entries(sysroot_)));
  }

 private:
  std::string entries_directory() const { return path_join(esp_, "loader/entries"); }
  std::string entry_path(const std::string& file) const { return path_join(entries_directory(), file); }

  static bool is_mirror(const EspMenu& menu, const std::vector<Entry>& entries) {
    return std::equal(menu.ours.begin(), menu.ours.end(), entries.begin(), entries.end(),
                      [](const EspEntry& a, const Entry& b) { return same_start(a.entry, b); });
  }

  /// systemd-boot must start the first of ours, whatever else there is.
  Result<void> refuse_overridden(const std::string& first) const {
    std::string why = TRY(esp::overriding_default(esp_, first));
    const EspMenu menu = TRY(esp::read_esp(esp_));
    if (why.empty() && !menu.stronger.empty()) {
      why =
          fmt::format("{}/{} sorts before the entries of rasupd", entries_directory(), menu.stronger.front());
    }
    if (why.empty()) return {};
    return fail(Kind::Boot, why,
                "remove the line or the entry; nothing else may choose what this machine starts");
  }

  /// After a power cut between libostree's switch and ours the entries here still name yesterday's boot.N,
  /// which the next switch makes anew with other links. They get today's path, in the order and with the
  /// counter they have.
  Result<void> repoint() {
    const EspMenu menu = TRY(esp::read_esp(esp_));
    const std::vector<Entry> today = TRY(resolved_entries(sysroot_));
    std::vector<Entry> wanted;
    std::optional<unsigned> left;
    bool moved = false;
    for (const EspEntry& ours : menu.ours) {
      const auto same = std::find_if(today.begin(), today.end(), [&](const Entry& entry) {
        return !entry.deployment.empty() && entry.deployment == ours.entry.deployment;
      });
      moved = moved || same == today.end() || ours.entry.options != same->options;
      if (same == today.end()) continue;  // gone from the entries, and its path with the next switch
      if (wanted.empty()) left = ours.left;
      wanted.push_back(ours.entry);
      wanted.back().options = same->options;
    }
    if (!moved) return {};
    TRY(mirror(wanted, left));
    return failpoint("esp-repointed");
  }

  Result<void> copy_kernels(const std::vector<Entry>& entries) {
    const auto all = TRY(esp::copies(sysroot_, esp_, entries));
    const auto missing = TRY(esp::missing_copies(all));
    std::vector<std::uint64_t> sizes;
    for (const esp::Copy& copy : missing) {
      struct stat info {};
      if (::stat(copy.from.c_str(), &info) != 0) return fail_errno(errno, copy.from);
      sizes.push_back(static_cast<std::uint64_t>(info.st_size));
    }
    const esp::Space space = TRY(esp::space_for(esp_, sizes));
    TRY(esp::check_space(esp_, space));
    for (const esp::Copy& copy : missing) {
      const std::string directory = copy.to.substr(0, copy.to.rfind('/'));
      TRY(make_directories(directory));
      TRY(copy_file(copy.from, copy.to));
      TRY(fsync_directory(directory));
      TRY(failpoint("esp-kernel-copied"));
    }
    return missing.empty() ? Result<void>{} : fsync_directory(path_join(esp_, "ostree"));
  }

  /// Makes our entries on the ESP say `entries`, the first with `left` starts. New names above all there are;
  /// on failure what was written goes again and the old ones stay what boots.
  Result<void> mirror(const std::vector<Entry>& entries, std::optional<unsigned> left) {
    const EspMenu menu = TRY(esp::read_esp(esp_));
    if (entries.empty()) return {};
    if (is_mirror(menu, entries) && menu.ours.front().left == left) return {};
    TRY(make_directories(entries_directory()));
    const std::uint64_t highest = menu.ours.empty() ? 0 : menu.ours.front().number;
    std::vector<std::string> written;
    auto done = write_new(entries, left, highest + entries.size(), written);
    if (!done) {
      for (const std::string& path : written) ::unlink(path.c_str());
      return done;
    }
    for (const EspEntry& ours : menu.ours) {
      const std::string path = entry_path(ours.entry.file);
      if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno(errno, "removing " + path);
    }
    TRY(fsync_directory(entries_directory()));
    return failpoint("esp-entries-removed");
  }

  Result<void> write_new(const std::vector<Entry>& entries, std::optional<unsigned> left,
                         std::uint64_t number, std::vector<std::string>& written) {
    for (const Entry& entry : entries) {
      const bool first = written.empty();
      const std::string path = entry_path(esp::file_name(number, first ? left : std::nullopt));
      written.push_back(path);
      TRY(write_file_durably(path, esp::entry_text(entry, number), 0644));
      --number;
      if (first) TRY(failpoint("esp-entry-written"));
    }
    return failpoint("esp-entries-rewritten");
  }

  Result<void> settle() const { return settle_for_boot(sysroot_, esp_); }

  std::string sysroot_, esp_;
};

}  // namespace

std::unique_ptr<Bootloader> make_systemd_boot(std::string sysroot, std::string esp) {
  return std::make_unique<SystemdBoot>(std::move(sysroot), std::move(esp));
}

}  // namespace rasupd::boot
