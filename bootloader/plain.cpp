// The `entries` backend: entries are the whole truth, nothing beside them needs writing and nothing counts.

#include "bootloader/bootloader.hpp"
#include "bootloader/entries.hpp"
#include "bootloader/entry_files.hpp"

namespace rasupd::boot {

Result<void> Bootloader::check_space(std::uint64_t) const {
  return {};  // nothing beside /boot
}

namespace {

class Entries : public Bootloader {
 public:
  explicit Entries(std::string sysroot) : sysroot_(std::move(sysroot)) {}

  std::string_view name() const override { return "entries"; }
  Counting counting() const override { return Counting::none; }
  Result<Menu> read() const override { return read_menu(sysroot_); }
  Result<void> prepare(const Next&) override { return {}; }
  Result<std::vector<std::string>> finish(const Menu& before, const Next&) override {
    return carry_foreign(sysroot_, before);
  }
  Result<void> verify(const std::string& directory) const override {
    return verify_entries(sysroot_, directory);
  }
  Result<std::optional<Trial>> trial() const override { return std::optional<Trial>{}; }
  Result<void> end_trial() override { return {}; }
  Result<bool> in_step() const override { return true; }

 private:
  std::string sysroot_;
};

}  // namespace

std::unique_ptr<Bootloader> make_entries(std::string sysroot) {
  return std::make_unique<Entries>(std::move(sysroot));
}

}  // namespace rasupd::boot
