#include "install/grub_image.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.hpp"
#include "install/disk_layout.hpp"

namespace rasupd::grub_image {
namespace {

constexpr const char* kModules = "/usr/lib/grub";
constexpr const char* kBiosFormat = "i386-pc";
constexpr std::size_t kMaxImage = 16 * 1024 * 1024;

/// What both configurations, the one in the image and grub.cfg in /boot, use: nothing is loaded later.
constexpr std::initializer_list<const char*> kCommon = {
    "part_gpt", "part_msdos", "ext2",   "fat",       "search", "search_fs_uuid", "search_label",
    "normal",   "configfile", "linux",  "loadenv",   "test",   "true",           "echo",
    "serial",   "terminal",   "boot",   "reboot",    "halt",   "sleep",          "minicmd",
    "ls",       "cat",        "regexp", "all_video", "gzio",   "probe"};

// GRUB 2, include/grub/i386/pc/boot.h.
constexpr std::size_t kCodeEnd =
    0x1b8;  ///< GRUB_BOOT_MACHINE_WINDOWS_NT_MAGIC: disk signature, then partitions
constexpr std::size_t kSignature = 0x1fe;       ///< GRUB_BOOT_MACHINE_SIGNATURE, 0x55 0xaa
constexpr std::size_t kKernelSector = 0x5c;     ///< GRUB_BOOT_MACHINE_KERNEL_SECTOR, 8 bytes
constexpr std::size_t kDriveCheck = 0x66;       ///< GRUB_BOOT_MACHINE_DRIVE_CHECK, a short jump
constexpr std::string_view kNops = "\x90\x90";  ///< what grub-bios-setup writes there for a hard disk
/// GRUB_BOOT_MACHINE_LIST_SIZE before the end of diskboot.img's sector, struct grub_pc_bios_boot_blocklist:
/// the rest of core.img as start (8 bytes), length in sectors (2), segment (2).
constexpr std::size_t kBlockList = kSector - 12;
/// GRUB_BOOT_I386_PC_KERNEL_SEG (0x800) behind diskboot.img's own sector, in paragraphs of 16 bytes.
constexpr std::uint16_t kRestSegment = 0x820;

void put(std::string& bytes, std::size_t at, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i) & 0xff);
}

bool is_boot_sector(std::string_view bytes) {
  return bytes.size() == kSector && bytes.substr(kSignature) == "\x55\xaa";
}

}  // namespace

std::vector<Target> targets_of(std::string_view architecture) {
  if (architecture == "amd64") {
    return {{"x86_64-efi", "grub-efi-amd64-bin", "BOOTX64.EFI"}, {kBiosFormat, "grub-pc-bin", ""}};
  }
  if (architecture == "arm64") return {{"arm64-efi", "grub-efi-arm64-bin", "BOOTAA64.EFI"}};
  if (architecture == "riscv64") return {{"riscv64-efi", "grub-efi-riscv64-bin", "BOOTRISCV64.EFI"}};
  return {};
}

std::vector<Target> present_targets(std::string_view architecture) {
  std::vector<Target> found;
  for (const Target& target : targets_of(architecture)) {
    if (exists(fmt::format("{}/{}/moddep.lst", kModules, target.format))) found.push_back(target);
  }
  return found;
}

std::string how_to_get(std::string_view architecture, std::string_view host) {
  std::string install;
  // Debian has the modules as packages of the architecture they are for.
  const std::string of = architecture == host ? "" : fmt::format(":{}", architecture);
  for (const Target& target : targets_of(architecture)) install += " " + target.package + of;
  if (install.empty()) return "";
  install.insert(0, "apt-get install");
  if (of.empty()) return install;
  return fmt::format("dpkg --add-architecture {} && apt-get update && {}", architecture, install);
}

std::string early_config(std::string_view boot_uuid, bool separate_boot) {
  return fmt::format(
      "search --no-floppy --fs-uuid {} --set=root\n"
      "set prefix=($root){}/grub\n"
      "configfile $prefix/grub.cfg\n",
      boot_uuid, separate_boot ? "" : "/boot");
}

Result<std::string> make(Runner& runner, const Target& target, const std::string& work,
                         std::string_view boot_uuid, bool separate_boot) {
  const std::string config = path_join(work, "early.cfg"), image = path_join(work, target.format + ".img");
  TRY(write_file_durably(config, early_config(boot_uuid, separate_boot), 0600));
  std::vector<std::string> words{"grub-mkimage",
                                 "--format=" + target.format,
                                 fmt::format("--directory={}/{}", kModules, target.format),
                                 "--config=" + config,
                                 separate_boot ? "--prefix=/grub" : "--prefix=/boot/grub",
                                 "--output=" + image};
  if (target.efi_file.empty()) words.push_back("biosdisk");
  words.insert(words.end(), kCommon.begin(), kCommon.end());
  TRY(run_tool(runner, words));
  auto bytes = TRY(read_file(image, kMaxImage));
  if (!bytes) return fail(Kind::Failed, "grub-mkimage wrote no " + image);
  return std::move(*bytes);
}

Result<std::string> patch_core(std::string core, std::uint64_t start_lba, std::uint64_t sectors) {
  if (core.size() <= kSector) return fail(Kind::Failed, "GRUB's core.img is too short");
  core.resize((core.size() + kSector - 1) / kSector * kSector, '\0');
  const std::uint64_t count = core.size() / kSector;
  if (count > sectors) {
    return fail(Kind::Failed, fmt::format("GRUB's core.img has {} sectors, bios_boot {}", count, sectors));
  }
  put(core, kBlockList, start_lba + 1, 8);
  put(core, kBlockList + 8, count - 1, 2);
  put(core, kBlockList + 10, kRestSegment, 2);
  return core;
}

Result<std::string> boot_sector(std::string_view boot_image, std::string_view old, std::uint64_t core_lba) {
  if (!is_boot_sector(boot_image)) return fail(Kind::Failed, "GRUB's boot.img is no boot sector");
  if (!is_boot_sector(old)) return fail(Kind::Failed, "the disk has no protective MBR");
  std::string sector(boot_image.substr(0, kCodeEnd));
  put(sector, kKernelSector, core_lba, 8);
  sector.replace(kDriveCheck, kNops.size(), kNops);
  return sector.append(old.substr(kCodeEnd));
}

Result<std::string> read_boot_image() {
  const std::string path = fmt::format("{}/{}/boot.img", kModules, kBiosFormat);
  auto bytes = TRY(read_file(path, kSector));
  if (!bytes) return fail(Kind::Failed, path + " is missing", "apt-get install grub-pc-bin");
  return std::move(*bytes);
}

}  // namespace rasupd::grub_image
