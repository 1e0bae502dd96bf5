#pragma once
// Bootloader: who reads the boot entries, and what must hold before and after they are switched. libostree
// writes the Boot Loader Specification entries themselves (boot/loader/entries); a backend reads them as its
// bootloader would, keeps what a switch would lose, and proves that the switch took. One of the four
// interfaces of the house; `entries` is the backend for machines whose bootloader reads the entries directly,
// or has none yet. Errors: Boot (with the file), NoSpace. All paths are relative to the sysroot unless said.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rasupd::boot {

/// One entry of ours: a loader/entries/ostree-*.conf (Boot Loader Specification, "Type #1").
struct Entry {
  std::string file;           ///< name in loader/entries
  std::uint64_t version = 0;  ///< libostree numbers them; the highest boots
  std::string title, kernel,
      initrd;           ///< `linux` and `initrd` as written: absolute on the file system of /boot
  std::string options;  ///< as written
  std::string ostree;   ///< the value of `ostree=`: /ostree/boot.N/STATEROOT/BOOTCSUM/SERIAL
  std::string stateroot, boot_checksum;  ///< two parts of it
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

class Bootloader {
 public:
  virtual ~Bootloader() = default;
  virtual std::string_view name() const = 0;
  /// What would boot, in order. No lock, no write; unreadable entries are problems, not errors.
  virtual Result<Menu> read() const = 0;
  /// Carries over what the switch from `before` lost. Best effort: what could not be kept is returned as
  /// text.
  virtual std::vector<std::string> after_switch(const Menu& before) = 0;
  /// Reads everything anew: the first entry leads to the deployment `directory`, and its kernel and initramfs
  /// in /boot are byte for byte the deployment's.
  virtual Result<void> verify(const std::string& directory) const = 0;
};

/// The backend for plain entries beneath `sysroot` (absolute).
std::unique_ptr<Bootloader> make_entries(std::string sysroot);

}  // namespace rasupd::boot
