// The `entries` backend: entries are the whole truth, nothing beside them needs writing.

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/bootloader.hpp"
#include "bootloader/entries.hpp"
#include "bootloader/kernel.hpp"

namespace rasupd::boot {
namespace {

tl::unexpected<Error> differs(std::string message) {
  return fail(Kind::Boot, std::move(message), "look at /boot; do not reboot before it is mounted and whole");
}

class Entries : public Bootloader {
 public:
  explicit Entries(std::string sysroot) : sysroot_(std::move(sysroot)) {}

  std::string_view name() const override { return "entries"; }

  Result<Menu> read() const override { return read_menu(sysroot_); }

  // libostree makes the next loader.N/entries from scratch, so other systems' entries would be lost at every
  // switch. They cannot be put in before (it empties the directory first), hence there is a short window
  // in which they are not there; what boots by default is whole at every moment.
  std::vector<std::string> after_switch(const Menu& before) override {
    std::vector<std::string> lost;
    const std::string directory = path_join(sysroot_, "boot/loader/entries");
    for (const ForeignFile& file : before.foreign) {
      const std::string path = path_join(directory, file.name);
      if (exists(path)) continue;
      const auto written = write_file_durably(path, file.content, 0644);
      if (!written) {
        lost.push_back(fmt::format("the boot entry {} of another system was lost: {}", printable(file.name),
                                   written.error().message));
      }
    }
    return lost;
  }

  Result<void> verify(const std::string& directory) const override {
    const Menu menu = TRY(read_menu(sysroot_));
    if (!menu.problems.empty()) return differs(menu.problems.front());
    if (menu.entries.empty()) return differs("no boot entries read back");
    const Entry& first = menu.entries.front();
    const std::string leads_to = TRY(resolve(sysroot_, first));
    if (leads_to != directory) {
      return differs(
          fmt::format("boot entry {} read back leads to {}, not to {}", first.file, leads_to, directory));
    }
    const auto files = TRY(find_kernel_files(path_join(sysroot_, directory)));
    if (!files) return {};
    TRY(compare(first, first.kernel, files->kernel));
    if (files->initramfs.empty()) return {};
    return compare(first, first.initrd, files->initramfs);
  }

 private:
  Result<void> compare(const Entry& entry, const std::string& written, const std::string& original) const {
    const std::string copy = boot_file(sysroot_, written);
    if (written.empty() || !exists(copy)) {
      return differs(
          fmt::format("boot entry {}: {} is missing", entry.file, written.empty() ? "initrd" : copy));
    }
    if (!TRY(same_content(copy, original))) {
      return differs(fmt::format("boot entry {}: {} differs from {}", entry.file, copy, original));
    }
    return {};
  }

  std::string sysroot_;
};

}  // namespace

std::unique_ptr<Bootloader> make_entries(std::string sysroot) {
  return std::make_unique<Entries>(std::move(sysroot));
}

}  // namespace rasupd::boot
