// The bytes that make BIOS find core.img, and the lines of fstab.

#include "install/grub_image.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "install/disk_boot.hpp"

namespace rasupd {
namespace {

std::uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i > 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[at + i - 1]);
  return value;
}

std::string sector_of(char fill) {
  std::string sector(kSector, fill);
  return sector.replace(510, 2, "\x55\xaa");
}

TEST(GrubImage, CoreKnowsWhereItsRestLies) {
  const auto core = grub_image::patch_core(std::string(5 * kSector + 1, 'c'), 34, 2014);
  ASSERT_TRUE(core);
  EXPECT_EQ(core->size(), 6 * kSector);
  EXPECT_EQ(number_at(*core, 0x1f4, 8), 35u);
  EXPECT_EQ(number_at(*core, 0x1fc, 2), 5u);
  EXPECT_EQ(number_at(*core, 0x1fe, 2), 0x820u);
  EXPECT_EQ((*core)[0x1f3], 'c');
  EXPECT_EQ((*core)[kSector], 'c');
  EXPECT_EQ(core->back(), '\0');
}

TEST(GrubImage, CoreMustFit) {
  EXPECT_TRUE(grub_image::patch_core(std::string(2014 * kSector, 'c'), 34, 2014));
  EXPECT_EQ(grub_image::patch_core(std::string(2014 * kSector + 1, 'c'), 34, 2014).error().kind,
            Kind::Failed);
  EXPECT_EQ(grub_image::patch_core("short", 34, 2014).error().kind, Kind::Failed);
}

TEST(GrubImage, BootSectorKeepsThePartitionTable) {
  const std::string old = sector_of('o');
  const auto sector = grub_image::boot_sector(sector_of('b'), old, 0x123456789);
  ASSERT_TRUE(sector);
  EXPECT_EQ(sector->size(), kSector);
  EXPECT_EQ(number_at(*sector, 0x5c, 8), 0x123456789u);
  EXPECT_EQ(sector->substr(0x66, 2), "\x90\x90");
  EXPECT_EQ((*sector)[0x5b], 'b');
  EXPECT_EQ((*sector)[0x68], 'b');
  EXPECT_EQ((*sector)[0x1b7], 'b');
  EXPECT_EQ(sector->substr(0x1b8), old.substr(0x1b8));  // disk signature, partition table, 55 aa
}

TEST(GrubImage, BootSectorRefusesWhatIsNone) {
  EXPECT_FALSE(grub_image::boot_sector(std::string(kSector, 'b'), sector_of('o'), 34));
  EXPECT_FALSE(grub_image::boot_sector(sector_of('b'), std::string(kSector, '\0'), 34));
  EXPECT_FALSE(grub_image::boot_sector(sector_of('b') + "x", sector_of('o'), 34));
}

TEST(GrubImage, EarlyConfigurationFindsBootByUuid) {
  EXPECT_THAT(grub_image::early_config("1234", false),
              testing::AllOf(testing::HasSubstr("--fs-uuid 1234 --set=root\n"),
                             testing::HasSubstr("prefix=($root)/boot/grub\n")));
  EXPECT_THAT(grub_image::early_config("1234", true), testing::HasSubstr("prefix=($root)/grub\n"));
}

TEST(GrubImage, Arm64StartsByUefiAlone) {
  const auto targets = grub_image::targets_of("arm64");
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].format, "arm64-efi");
  EXPECT_EQ(targets[0].efi_file, "BOOTAA64.EFI");
  EXPECT_TRUE(grub_image::targets_of("s390x").empty());
}

TEST(GrubImage, ModulesOfAnotherArchitectureArePackagesOfIt) {
  EXPECT_EQ(grub_image::how_to_get("amd64", "amd64"), "apt-get install grub-efi-amd64-bin grub-pc-bin");
  EXPECT_EQ(grub_image::how_to_get("arm64", "amd64"),
            "dpkg --add-architecture arm64 && apt-get update && apt-get install grub-efi-arm64-bin:arm64");
  EXPECT_EQ(grub_image::how_to_get("s390x", "amd64"), "");
}

TEST(DiskBoot, FstabNamesWhatTheInitramfsDoesNotMount) {
  LayoutRequest request;
  request.architecture = "amd64";
  request.boot_size = request.var_size = 100 * kMiB;
  request.file_system = "xfs";
  request.var_size = 400 * kMiB;
  auto list = plan_layout(request, 4096 * kMiB);
  ASSERT_TRUE(list);
  for (Partition& one : *list) one.uuid = one.file_system.empty() ? "" : "U" + std::to_string(one.number);
  EXPECT_EQ(fstab_lines(*list, "/efi"),
            "UUID=U3 /boot ext4 defaults 0 2\n"
            "UUID=U2 /efi vfat nofail,umask=0077 0 2\n"
            "UUID=U4 /var xfs defaults 0 2\n");
  EXPECT_THAT(fstab_lines(*list, "/boot/efi"), testing::HasSubstr("defaults 0 2\nUUID=U2 /boot/efi vfat"));
}

}  // namespace
}  // namespace rasupd
