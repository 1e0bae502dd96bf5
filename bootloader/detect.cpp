#include "bootloader/detect.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <functional>
#include <vector>

#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/esp.hpp"
#include "bootloader/extlinux.hpp"
#include "bootloader/grub.hpp"

namespace rasupd::boot {
namespace {

/// A bootloader that left traces, with what was seen.
struct Evidence {
  std::string what;  ///< for people: "GRUB (boot/grub/grub.cfg)"
  bool ours = true;  ///< written for rasupd, not only lying about
  bool systemd_boot = false;
  std::function<std::unique_ptr<Bootloader>()> make;
};

bool same_directory(const std::string& a, const std::string& b) {
  struct stat one {
  }, two{};
  return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &two) == 0 && one.st_dev == two.st_dev &&
         one.st_ino == two.st_ino;
}

/// The directory of the EFI system partition that carries systemd-boot, empty when none does.
Result<std::string> find_esp(const std::string& sysroot, bool running, const Places& places) {
  std::vector<std::string> candidates;
  if (running) {
    if (const auto mounted = TRY(mounted_esp(places))) candidates.push_back(*mounted);
  } else {
    for (const char* place : {"efi", "boot/efi", "boot/firmware"})
      candidates.push_back(path_join(sysroot, place));
  }
  for (const std::string& candidate : candidates) {
    if (!TRY(has_systemd_boot(candidate))) continue;
    if (!same_directory(candidate, path_join(sysroot, "boot"))) return candidate;
    return fail(
        Kind::Boot,
        candidate + " is the EFI system partition and /boot at once, where libostree cannot make links",
        "mount it at /efi");
  }
  return std::string();
}

/// U-Boot's environment belongs to the board: it may be written on the running machine, or where a configuration was
/// handed down with --config-root, never for a disk that only happens to be mounted here.
std::string environment_config(const World& world, bool running) {
  const std::string path = path_join(world.config_root, "etc/fw_env.config");
  return (running || world.config_root != "/") && exists(path) ? path : "";
}

Result<std::vector<Evidence>> collect(const World& world, bool running, const std::string& esp) {
  const std::string& root = world.sysroot;
  std::vector<Evidence> found;
  const std::string firmware = path_join(root, "boot/firmware");
  if (exists(path_join(firmware, "autoboot.txt"))) {
    found.push_back({"the Raspberry Pi (boot/firmware/autoboot.txt)", true, false,
                     [root, firmware] { return make_rpi(root, firmware); }});
  }
  if (TRY(grub::is_installed(root))) {
    found.push_back({"GRUB (boot/grub/grub.cfg)", true, false, [root] { return make_grub(root); }});
  }
  if (!esp.empty()) {
    const bool ours = !TRY(esp::read_esp(esp)).ours.empty();
    found.push_back({fmt::format("systemd-boot ({}/EFI/systemd)", esp), ours, true,
                     [root, esp] { return make_systemd_boot(root, esp); }});
  }
  if (TRY(extlinux::is_installed(root))) {
    const std::string config = environment_config(world, running);
    Runner& runner = world.runner;
    found.push_back({"extlinux (boot/extlinux/extlinux.conf)", true, false, [root, config, &runner] {
                       return config.empty() ? make_extlinux(root) : make_uboot(root, runner, config);
                     }});
  }
  return found;
}

/// A systemd-boot that only lies about does not count beside a bootloader that was set up for rasupd.
void drop_strays(std::vector<Evidence>& found) {
  if (found.size() < 2) return;
  std::erase_if(found, [](const Evidence& one) { return !one.ours; });
}

tl::unexpected<Error> contradiction(std::string_view one, std::string_view other) {
  return fail(Kind::Boot, fmt::format("two bootloaders claim this machine: {} and {}", one, other),
              "remove the files of the one that does not start it");
}

}  // namespace

Result<std::unique_ptr<Bootloader>> detect(const World& world, bool running, const Places& places) {
  const std::string esp = TRY(find_esp(world.sysroot, running, places));
  auto found = TRY(collect(world, running, esp));
  const std::string firmware = running ? TRY(loader_info(places)) : std::string();
  if (firmware.starts_with("systemd-boot")) {
    // What started the machine is what starts it next.
    for (const Evidence& one : found) {
      if (one.systemd_boot) return one.make();
    }
    if (!found.empty()) return contradiction(found.front().what, "the firmware's LoaderInfo, " + firmware);
    return fail(Kind::Boot,
                fmt::format("{} started this machine, but its EFI system partition is not mounted", firmware),
                "mount it at /efi or /boot/efi");
  }
  drop_strays(found);
  if (found.size() > 1) return contradiction(found[0].what, found[1].what);
  return found.empty() ? make_entries(world.sysroot) : found.front().make();
}

}  // namespace rasupd::boot
