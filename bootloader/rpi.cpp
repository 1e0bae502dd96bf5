#include "bootloader/rpi.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/detect.hpp"
#include "bootloader/entries.hpp"
#include "bootloader/entry_files.hpp"
#include "bootloader/kernel.hpp"

namespace rasupd::boot {
namespace rpi {
namespace {

constexpr std::string_view kTrial = "# rasupd-trial ";
constexpr std::string_view kPartition = "boot_partition=";

tl::unexpected<Error> unclear(std::string_view why) {
  return fail(Kind::Boot, fmt::format("autoboot.txt: {}", why),
              "the machine starts the partition its [all] section names; write the file anew as "
              "docs/bootloaders.md says");
}

unsigned other(unsigned partition) {
  return partition == kSideA ? kSideB : kSideA;
}

}  // namespace

Result<Autoboot> parse_autoboot(std::string_view text) {
  Autoboot out;
  out.all = out.tryboot = 0;
  std::string section = "[all]";
  for (const std::string& raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    if (line.starts_with(kTrial)) out.trial = trim(line.substr(kTrial.size()));
    if (line.starts_with('[')) section = line;
    if (!line.starts_with(kPartition)) continue;
    const std::string_view number = trim(line.substr(kPartition.size()));
    const unsigned partition = number == "2" ? kSideA : number == "3" ? kSideB : 0;
    if (partition == 0)
      return unclear(fmt::format("boot_partition={} is neither 2 nor 3", printable(number)));
    if (section == "[all]") out.all = partition;
    if (section == "[tryboot]") out.tryboot = partition;
  }
  if (text.size() > kMaxAutoboot) return unclear("longer than the 512 bytes that the firmware reads");
  if (out.all == 0) return unclear("no boot_partition for [all]");
  if (out.tryboot == 0) out.tryboot = other(out.all);
  return out;
}

std::string autoboot_text(const Autoboot& autoboot) {
  std::string out = "# Written by rasupd.\n";
  if (!autoboot.trial.empty()) out += fmt::format("{}{}\n", kTrial, autoboot.trial);
  return out + fmt::format("[all]\ntryboot_a_b=1\n{0}{1}\n[tryboot]\n{0}{2}\n", kPartition, autoboot.all,
                           autoboot.tryboot);
}

Result<void> write_static_files(const std::string& firmware) {
  const std::string path = path_join(firmware, "autoboot.txt");
  if (exists(path)) return {};
  TRY(make_directories(firmware));
  return write_file_durably(path, autoboot_text({}), 0644);
}

namespace {

class Rpi : public Bootloader {
 public:
  Rpi(std::string sysroot, std::string firmware, std::string tryboot_flag)
      : sysroot_(std::move(sysroot)),
        firmware_(std::move(firmware)),
        tryboot_flag_(std::move(tryboot_flag)) {}

  std::string_view name() const override { return "rpi"; }
  Counting counting() const override { return Counting::once; }
  Result<Menu> read() const override { return read_menu(sysroot_); }

  Result<void> check_space(std::uint64_t bytes) const override {
    const State state = TRY(read_state());
    return check_side_space(state.passive, bytes);
  }

  Result<void> prepare(const Next& next) override {
    if (next.entries.empty()) return {};
    State state = TRY(read_state());
    TRY(hold(state, next.entries.front()));
    // [all] stays: without a reboot that asks for the trial the old side starts.
    return next.trial ? arm(state, next.entries.front()) : Result<void>{};
  }

  Result<std::vector<std::string>> finish(const Menu& before, const Next& next) override {
    std::vector<std::string> lost = carry_foreign(sysroot_, before);
    const std::vector<Entry> entries = TRY(resolved_entries(sysroot_));
    if (entries.empty()) return lost;
    State state = TRY(read_state());
    TRY(hold(state, entries.front()));
    if (next.trial && next.trial->deployment == entries.front().deployment) {
      TRY(arm(state, entries.front()));
    } else {
      TRY(commit(state, entries.front()));
    }
    state = TRY(read_state());
    TRY(remove_unused_links(sysroot_, {state.active, state.passive}));
    return lost;
  }

  Result<void> verify(const std::string& directory) const override {
    TRY(verify_entries(sysroot_, directory));
    const Entry first = TRY(resolved_entries(sysroot_)).front();
    const State state = TRY(read_state());
    const Side* side = leading_side(state, first);
    if (!side) return differs("neither side of the boot partitions leads to " + directory);
    Entry linked = first;
    linked.ostree = link_path(first, side->partition);
    if (TRY(resolve(sysroot_, linked)) != directory)
      return differs(linked.ostree + " does not lead to " + directory);
    for (const esp::Copy& copy : TRY(side_files(sysroot_, *side, first))) {
      if (!exists(copy.to)) return differs(copy.to + " is missing");
      if (!TRY(same_content(copy.from, copy.to)))
        return differs(fmt::format("{} differs from {}", copy.to, copy.from));
    }
    return {};
  }

  Result<std::optional<Trial>> trial() const override {
    const State state = TRY(read_state());
    if (state.autoboot.trial.empty()) return std::optional<Trial>{};
    if (state.passive.deployment != state.autoboot.trial) {
      return unclear("the deployment on trial is not on the side that would start it");
    }
    Trial trial;
    trial.deployment = state.autoboot.trial;
    trial.left = TRY(in_tryboot()) ? 0 : 1;
    return std::optional<Trial>{std::move(trial)};
  }

  Result<void> end_trial() override {
    const std::vector<Entry> entries = TRY(resolved_entries(sysroot_));
    const State state = TRY(read_state());
    return entries.empty() ? Result<void>{} : commit(state, entries.front());
  }

  Result<bool> in_step() const override {
    const std::vector<Entry> entries = TRY(resolved_entries(sysroot_));
    if (entries.empty()) return true;
    const State state = TRY(read_state());
    return leading_side(state, entries.front()) != nullptr;
  }

  std::vector<std::string> reboot_command() const override {
    const auto pending = trial();
    const auto entries = resolved_entries(sysroot_);
    const bool armed = pending && *pending && entries && !entries->empty();
    if (!armed || entries->front().deployment != (*pending)->deployment) return {"systemctl", "reboot"};
    return {"systemctl", "reboot", "--reboot-argument=0 tryboot"};
  }

 private:
  struct State {
    Autoboot autoboot;
    Side active, passive;  ///< the one that [all] starts, and the other
  };

  Result<State> read_state() const {
    const auto text = TRY(read_file(path_join(firmware_, "autoboot.txt"), 64u << 10, Kind::Boot));
    if (!text) return unclear("missing");
    State state;
    state.autoboot = TRY(parse_autoboot(*text));
    state.active = TRY(read_side(firmware_, state.autoboot.all));
    state.passive = TRY(read_side(firmware_, other(state.autoboot.all)));
    return state;
  }

  static bool holds(const Side& side, const Entry& entry) {
    return side.deployment == entry.deployment && side.cmdline == cmdline_of(entry, side.partition);
  }

  /// The side from which `entry` starts, by itself or by the trial that is armed; null when none does.
  static const Side* leading_side(const State& state, const Entry& entry) {
    if (holds(state.active, entry)) return &state.active;
    const bool armed =
        state.autoboot.trial == entry.deployment && state.autoboot.tryboot == state.passive.partition;
    return armed && holds(state.passive, entry) ? &state.passive : nullptr;
  }

  /// `entry` on one of the sides: on the one that boots when it is there, else on the other. The one that
  /// boots is never written.
  Result<void> hold(State& state, const Entry& entry) {
    if (holds(state.active, entry)) return {};
    TRY(write_side(sysroot_, state.passive, state.active, entry));
    state.passive = TRY(read_side(firmware_, state.passive.partition));
    return {};
  }

  Result<void> arm(const State& state, const Entry& entry) {
    if (holds(state.active, entry)) return {};  // it is what boots already
    Autoboot wanted = state.autoboot;
    wanted.tryboot = state.passive.partition;
    wanted.trial = entry.deployment;
    TRY(write_autoboot(wanted));
    return failpoint("rpi-armed");
  }

  Result<void> commit(const State& state, const Entry& entry) {
    const bool stays = holds(state.active, entry);
    if (!stays && !holds(state.passive, entry)) return unclear("neither side holds the first boot entry");
    Autoboot wanted;
    wanted.all = stays ? state.active.partition : state.passive.partition;
    wanted.tryboot = other(wanted.all);
    TRY(write_autoboot(wanted));
    return failpoint("rpi-committed");
  }

  Result<void> write_autoboot(const Autoboot& wanted) {
    const std::string path = path_join(firmware_, "autoboot.txt"), text = autoboot_text(wanted);
    if (text.size() > kMaxAutoboot) return fail(Kind::Bug, "autoboot.txt would be longer than 512 bytes");
    const auto now = TRY(read_file(path, 64u << 10, Kind::Boot));
    return now == text ? Result<void>{} : write_file_durably(path, text, 0644);
  }

  /// Did the firmware start this machine by tryboot? A number in four bytes of the device tree, absent
  /// elsewhere.
  Result<bool> in_tryboot() const {
    const auto flag = TRY(read_file(tryboot_flag_, 64, Kind::Boot));
    return flag && std::any_of(flag->begin(), flag->end(), [](char c) { return c != 0; });
  }

  std::string sysroot_, firmware_, tryboot_flag_;
};

}  // namespace
}  // namespace rpi

std::unique_ptr<Bootloader> make_rpi(std::string sysroot, std::string firmware, std::string tryboot_flag) {
  return std::make_unique<rpi::Rpi>(std::move(sysroot), std::move(firmware), std::move(tryboot_flag));
}

}  // namespace rasupd::boot
