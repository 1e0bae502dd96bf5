// U-Boot with its environment (doc/README.bootcount of U-Boot): the menu is extlinux.conf; while
// upgrade_available is 1, U-Boot counts every start in `bootcount` and runs `altbootcmd` instead of `bootcmd`
// once that is above `bootlimit`. fw_setenv(8) of libubootenv writes the whole environment in one go; with
// two copies (two lines in fw_env.config) a power cut leaves the old or the new one.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/detect.hpp"
#include "bootloader/entries.hpp"
#include "bootloader/entry_files.hpp"
#include "bootloader/extlinux.hpp"

namespace rasupd::boot {
namespace {

using Variables = std::map<std::string, std::string>;

class Uboot : public Bootloader {
 public:
  Uboot(std::string sysroot, Runner& runner, std::string fw_env)
      : sysroot_(std::move(sysroot)), runner_(runner), fw_env_(std::move(fw_env)) {}

  std::string_view name() const override { return "uboot"; }
  Counting counting() const override { return Counting::tries; }
  Result<Menu> read() const override { return read_menu(sysroot_); }

  Result<void> prepare(const Next& next) override {
    TRY(extlinux::prepare_menu(sysroot_, next));
    // Names the deployment to go back to by its label, which both menus have: armed too early, before the
    // entries turn, it leads back to what boots anyway.
    if (next.trial) TRY(arm(next));
    return settle();
  }

  Result<std::vector<std::string>> finish(const Menu& before, const Next& next) override {
    auto lost = TRY(extlinux::finish_menu(sysroot_, before, next));
    if (!next.trial) {
      TRY(end_trial());
    } else {
      const auto armed = TRY(trial());
      if (!armed || armed->deployment != next.trial->deployment) TRY(arm(next));
    }
    TRY(settle());
    return lost;
  }

  Result<void> verify(const std::string& directory) const override {
    return extlinux::verify_menu(sysroot_, directory);
  }

  Result<std::optional<Trial>> trial() const override {
    const Variables now = TRY(variables());
    if (value(now, "upgrade_available") != "1") return std::optional<Trial>{};
    Trial trial;
    trial.deployment = value(now, "rasupd_id");
    if (trial.deployment.empty())
      return unclear("upgrade_available=1 without rasupd_id: another program's trial");
    const unsigned limit = TRY(number(now, "bootlimit")), count = TRY(number(now, "bootcount"));
    trial.left = count < limit ? limit - count : 0;
    return std::optional<Trial>{std::move(trial)};
  }

  Result<void> end_trial() override {
    const Variables now = TRY(variables());
    if (value(now, "upgrade_available") != "1" && value(now, "rasupd_id").empty()) return {};
    return set({{"upgrade_available", "0"}, {"bootcount", "0"}, {"rasupd_id", ""}});
  }

  Result<bool> in_step() const override { return extlinux::in_step(sysroot_); }

 private:
  static std::string value(const Variables& all, const std::string& name) {
    const auto found = all.find(name);
    return found == all.end() ? "" : found->second;
  }

  tl::unexpected<Error> unclear(std::string_view why) const {
    return fail(Kind::Boot, fmt::format("the environment of U-Boot ({}): {}", fw_env_, why),
                "see `fw_printenv`; `fw_setenv upgrade_available 0` ends a trial by hand");
  }

  Result<unsigned> number(const Variables& all, const std::string& name) const {
    const std::string text = value(all, name);
    unsigned out = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
      return unclear(fmt::format("{}={} is no number", name, printable(text)));
    }
    return out;
  }

  Result<Variables> variables() const {
    const auto ran = TRY(runner_.run({"fw_printenv", "-c", fw_env_}, RunLimits{}));
    if (ran.exit_code != 0) return unclear("cannot be read: " + printable(trim(ran.err)));
    Variables out;
    for (const std::string& line : split(ran.out, '\n')) {
      const auto equals = line.find('=');
      if (equals != std::string::npos) out[line.substr(0, equals)] = line.substr(equals + 1);
    }
    return out;
  }

  /// All in one write; read back, because fw_setenv says nothing about what it did not take.
  Result<void> set(const Variables& wanted) {
    RunLimits limits;
    for (const auto& [name, text] : wanted) limits.input += name + "=" + text + "\n";
    const auto ran = TRY(runner_.run({"fw_setenv", "-c", fw_env_, "-s", "-"}, limits));
    if (ran.exit_code != 0) return unclear("cannot be written: " + printable(trim(ran.err)));
    const Variables now = TRY(variables());
    for (const auto& [name, text] : wanted) {
      if (value(now, name) != text)
        return unclear(fmt::format("{} reads back as {}", name, printable(value(now, name))));
    }
    return {};
  }

  Result<void> arm(const Next& next) {
    // A limit of 0 means none to U-Boot.
    const unsigned limit = std::max(next.trial->left, 1u);
    std::string fallback = "run bootcmd";
    if (next.entries.size() > 1) {
      fallback = fmt::format("setenv pxe_label_override {}; run bootcmd",
                             extlinux::label(next.entries[1].deployment));
    }
    const Variables wanted{{"bootcount", std::to_string(limit - next.trial->left)},
                           {"bootlimit", std::to_string(limit)},
                           {"upgrade_available", "1"},
                           {"rasupd_id", next.trial->deployment},
                           {"altbootcmd", fallback}};
    TRY(set(wanted));
    return failpoint("uboot-armed");
  }

  /// U-Boot reads the disk as it is, without the journal.
  Result<void> settle() const {
    return settle_for_boot(sysroot_, path_join(sysroot_, "boot"));
  }

  std::string sysroot_;
  Runner& runner_;
  std::string fw_env_;
};

}  // namespace

std::unique_ptr<Bootloader> make_uboot(std::string sysroot, Runner& runner, std::string fw_env) {
  return std::make_unique<Uboot>(std::move(sysroot), runner, std::move(fw_env));
}

}  // namespace rasupd::boot
