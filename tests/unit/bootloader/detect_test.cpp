#include "bootloader/detect.hpp"

#include <gtest/gtest.h>

#include "boot_kit.hpp"
#include "bootloader/extlinux.hpp"
#include "bootloader/grub.hpp"
#include "fakes/fakes.hpp"

namespace rasupd::boot {
namespace {

class DetectTest : public BootKit {
 protected:
  DetectTest() {
    fake_.world.sysroot = root();
    places_.efivars = root_ / "efivars";
    places_.mountinfo = root_ / "mountinfo";
    put("mountinfo", "22 1 8:1 / / rw shared:1 - ext4 /dev/sda2 rw\n");
  }
  /// The bootloader's name, or the error's text.
  std::string found(bool running = false) {
    const auto one = detect(fake_.world, running, places_);
    if (!one && one.error().kind == Kind::Boot && !one.error().hint.empty()) return one.error().message;
    return one ? std::string((*one)->name()) : "another error: " + one.error().message;
  }
  void firmware_says(const std::string& text) {
    std::string value(4, '\0');
    for (const char c : text) value += std::string{c, '\0'};
    put("efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f", value + std::string(2, '\0'));
  }
  void grub() { ASSERT_TRUE(grub::write_static_files(root(), false)); }
  void systemd_boot(const std::string& esp) { put(esp + "/EFI/systemd/systemd-bootx64.efi", "MZ"); }

  fakes::FakeWorld fake_;
  Places places_;
};

TEST_F(DetectTest, WithoutEvidenceThereAreOnlyEntries) {
  EXPECT_EQ(found(), "entries");
  EXPECT_EQ(found(true), "entries");
  put("boot/grub/grub.cfg", "# a distribution's\n");
  put("efi/EFI/BOOT/BOOTX64.EFI", "MZ");
  EXPECT_EQ(found(), "entries");
}

TEST_F(DetectTest, EachIsFoundByItsFiles) {
  grub();
  EXPECT_EQ(found(), "grub");
  fs::remove_all(root_ / "boot/grub");
  for (const char* esp : {"efi", "boot/efi", "boot/firmware"}) {
    systemd_boot(esp);
    EXPECT_EQ(found(), "systemd-boot") << esp;
    fs::remove_all(root_ / esp);
  }
  put("efi/efi/SYSTEMD/SYSTEMD-BOOTAA64.EFI", "MZ");
  EXPECT_EQ(found(), "systemd-boot");
}

TEST_F(DetectTest, TheRaspberryPiAndExtlinux) {
  put("boot/firmware/autoboot.txt", "[all]\nboot_partition=2\n");
  EXPECT_EQ(found(), "rpi");
  ASSERT_TRUE(extlinux::write_static_files(root()));
  const std::string both = found();
  EXPECT_NE(both.find("autoboot.txt"), std::string::npos) << both;
  EXPECT_NE(both.find("extlinux.conf"), std::string::npos) << both;
  fs::remove_all(root_ / "boot/firmware");
  EXPECT_EQ(found(), "extlinux");
  // The environment of the board is the running machine's, or one that is named by its config root.
  fake_.world.config_root = root_ / "config";
  EXPECT_EQ(found(true), "extlinux");
  put("config/etc/fw_env.config", "/dev/mtd0 0 0x1000\n");
  EXPECT_EQ(found(false), "uboot");
  EXPECT_EQ(found(true), "uboot");
}

TEST_F(DetectTest, AStraySystemdBootYieldsAndASetUpOneContradicts) {
  grub();
  systemd_boot("efi");
  EXPECT_EQ(found(), "grub");
  put("efi/loader/entries/ostree-0000000001.conf", "linux /x\noptions ostree=/ostree/boot.0/x/y/0\n");
  const std::string both = found();
  EXPECT_NE(both.find("GRUB"), std::string::npos) << both;
  EXPECT_NE(both.find("systemd-boot"), std::string::npos) << both;
}

TEST_F(DetectTest, OnARunningMachineTheFirmwareKnows) {
  firmware_says("systemd-boot 252.38-1~deb12u1");
  const std::string unmounted = found(true);
  EXPECT_NE(unmounted.find("not mounted"), std::string::npos) << unmounted;
  EXPECT_EQ(found(false), "entries");
  grub();
  const std::string both = found(true);
  EXPECT_NE(both.find("GRUB"), std::string::npos) << both;
  EXPECT_NE(both.find("systemd-boot 252"), std::string::npos) << both;
  firmware_says("GRUB 2.12");
  EXPECT_EQ(found(true), "grub");
}

TEST_F(DetectTest, TheMountedPartitionIsTakenInOrder) {
  const std::string vfat = " rw,relatime shared:9 - vfat /dev/sda1 rw\n";
  put("mountinfo",
      "40 22 8:1 / /boot" + vfat + "41 22 8:1 / /boot/efi" + vfat + "42 22 8:3 / /efi rw - ext4 /dev/x rw\n");
  EXPECT_EQ(mounted_esp(places_).value().value(), "/boot/efi");
  put("mountinfo", "40 22 8:1 / /boot" + vfat);
  EXPECT_EQ(mounted_esp(places_).value().value(), "/boot");
  put("mountinfo", "40 22 8:1 / /boot/efi/x" + vfat + "garbage\n");
  EXPECT_FALSE(mounted_esp(places_).value());
  EXPECT_EQ(loader_info(places_).value(), "");
}

TEST_F(DetectTest, EvidenceThatCannotBeReadIsAnError) {
  fs::create_directories(root_ / "boot/grub/grub.cfg");
  const auto refused = detect(fake_.world, false, places_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("grub.cfg"), std::string::npos);
}

}  // namespace
}  // namespace rasupd::boot
