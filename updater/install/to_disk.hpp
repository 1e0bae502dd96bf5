#pragma once
// First installation onto a whole disk or an image file: partitions, file systems, the system, the
// bootloader. Nothing on the device is touched before the image is verified and known to fit.

#include <string>
#include <vector>

#include "install/disk_layout.hpp"
#include "install/install.hpp"

namespace rasupd {

struct DiskRequest {
  InstallRequest install;  ///< `replace` means nothing here
  std::string device;
  bool wipe = false;                ///< what the device holds may go
  std::string bootloader = "auto";  ///< auto, grub, systemd-boot or none
  LayoutRequest layout;             ///< its architecture is filled in
};

struct DiskReport {
  UpgradeReport upgrade;
  std::string device, bootloader;
  std::vector<Partition> partitions;
};

/// Errors: Usage (no such device, in use, signatures without `wipe`, sizes), NoSpace (the disk, with the
/// numbers), Failed (a tool is missing: its package), and those of install_to_filesystem(). Error::changed
/// tells whether the device was touched. Mounts and loop devices are gone when it returns, and also when the
/// process is killed: it moves the calling thread into a mount namespace of its own, for good.
Result<DiskReport> install_to_disk(const World& world, const Settings& settings, const DiskRequest& request);

}  // namespace rasupd
