#pragma once
// Bootloader: who reads the boot entries, and what must hold before and after they are switched. libostree
// writes the Boot Loader Specification entries themselves (boot/loader/entries) and swaps them in one rename; a
// backend makes sure that what its bootloader reads is complete before that rename and the same afterwards, counts
// the starts of a deployment on trial, and proves that the switch took. One of the four interfaces of the
// house. Errors: Boot (with the file), NoSpace. All paths are relative to the sysroot unless said.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rasupd::boot {

/// One entry of ours: a loader/entries/ostree-*.conf (Boot Loader Specification, "Type #1").
struct Entry {
  std::string file;           ///< name in loader/entries; empty in a Next: libostree has not written it yet
  std::uint64_t version = 0;  ///< libostree numbers them; the highest boots
  std::string title, kernel,
      initrd;           ///< `linux` and `initrd` as written: absolute on the file system of /boot
  std::string options;  ///< as written
  std::string ostree;   ///< the value of `ostree=`: /ostree/boot.N/STATEROOT/BOOTCSUM/SERIAL
  std::string stateroot, boot_checksum;  ///< two parts of it
  std::string deployment;  ///< CHECKSUM.SERIAL of the deployment it leads to; empty from read() (see resolve())
};

/// A file in loader/entries that is none of ours: another system's entry.
struct ForeignFile {
  std::string name, content;
};

struct Menu {
  bool present = false;        ///< there is a boot/loader/entries
  std::vector<Entry> entries;  ///< in boot order, first the default
  std::vector<ForeignFile> foreign;
  std::vector<std::string> problems;  ///< entries of ours that cannot be read, with the reason
};

/// What a bootloader can do about a deployment on trial; the health layer does the rest.
enum class Counting {
  none,   ///< nothing: a start that never reaches userspace repeats for ever (extlinux, plain entries)
  once,   ///< one start, the next one is the old deployment (Raspberry Pi tryboot); health asks for each start
  tries,  ///< counts down by itself and then boots the second entry (GRUB, systemd-boot, U-Boot)
};

/// A counter as it stands on the bootloader's medium.
struct Trial {
  std::string deployment;  ///< CHECKSUM.SERIAL it belongs to
  unsigned left = 0;       ///< starts that are left; 0: the next start is the second entry
};

/// The menu after the switch that is about to happen.
struct Next {
  std::vector<Entry> entries;  ///< as libostree will write them, first the default
  unsigned boot_version = 0;   ///< they will lie in boot/loader.<boot_version>
  std::optional<Trial> trial;  ///< the first entry boots on trial, with so many starts
};

class Bootloader {
 public:
  virtual ~Bootloader() = default;
  virtual std::string_view name() const = 0;
  virtual Counting counting() const = 0;
  /// What would boot, in order, as the entries say. No lock, no write; unreadable entries are problems, not
  /// errors.
  virtual Result<Menu> read() const = 0;
  /// Is there room for a kernel and an initramfs of `bytes` together on a file system of the bootloader's own, beside
  /// /boot? Error NoSpace with both figures. Writes nothing.
  virtual Result<void> check_space(std::uint64_t bytes) const;
  /// Before the switch: everything of `next` that must be in place when the entries turn, durably, with the
  /// counter armed. Changes nothing of what boots by today's entries.
  virtual Result<void> prepare(const Next& next) = 0;
  /// After the switch (or the switch back): what the bootloader reads follows the entries as they are now, with the
  /// counter of `next` or none, and what the switch from `before` lost is carried over. What could not be kept of
  /// other systems is returned as text; an error means that the bootloader does not boot what the entries say.
  virtual Result<std::vector<std::string>> finish(const Menu& before, const Next& next) = 0;
  /// Reads everything anew: the first entry leads to the deployment `directory`, its kernel and initramfs as the
  /// bootloader finds them are byte for byte the deployment's, and the bootloader's own files say the same.
  virtual Result<void> verify(const std::string& directory) const = 0;
  /// The counter on the medium; nullopt when none is armed. Error Boot when it cannot be read: never a guess (R81).
  virtual Result<std::optional<Trial>> trial() const = 0;
  /// Ends the trial: the first entry boots without a counter from now on, durably. Idempotent.
  virtual Result<void> end_trial() = 0;
  /// Does what the bootloader reads say the same as the entries? False after a power cut between the two, or when
  /// another tool wrote the entries. Reads only.
  virtual Result<bool> in_step() const = 0;
  /// The command that reboots into what boots next. A one-shot try needs an argument to the firmware.
  virtual std::vector<std::string> reboot_command() const { return {"systemctl", "reboot"}; }
};

/// Plain entries beneath `sysroot` (absolute): no bootloader of ours, or one that reads the entries directly.
std::unique_ptr<Bootloader> make_entries(std::string sysroot);

}  // namespace rasupd::boot
