#include "bootloader/detect.hpp"

#include "base/files.hpp"
#include "bootloader/grub.hpp"

namespace rasupd::boot {

Result<std::unique_ptr<Bootloader>> detect(const World& world, bool) {
  if (TRY(grub::is_installed(world.sysroot))) return make_grub(world.sysroot);
  return make_entries(world.sysroot);
}

}  // namespace rasupd::boot
