// How a disk is divided: pure sums, checked against what a GPT demands.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "install/disk_layout.hpp"

namespace rasupd {
namespace {

constexpr std::uint64_t kGiB = 1024 * kMiB;

std::vector<std::string> labels(const std::vector<Partition>& partitions) {
  std::vector<std::string> out;
  for (const Partition& one : partitions) out.push_back(one.name);
  return out;
}

LayoutRequest amd64() {
  LayoutRequest request;
  request.architecture = "amd64";
  return request;
}

/// No gap but alignment, no overlap, everything between the tables of the GPT.
void check_sound(const std::vector<Partition>& partitions, std::uint64_t disk) {
  std::uint64_t end = 34 * kSector;
  for (const Partition& one : partitions) {
    EXPECT_GE(one.start, end) << one.name;
    EXPECT_GT(one.size, 0u) << one.name;
    EXPECT_EQ(one.size % kSector, 0u) << one.name;
    if (one.use != PartitionUse::bios_boot) {
      EXPECT_EQ(one.start % kMiB, 0u) << one.name;
    }
    end = one.start + one.size;
  }
  EXPECT_LE(end, disk - 33 * kSector);
  for (std::size_t i = 0; i < partitions.size(); ++i) EXPECT_EQ(partitions[i].number, i + 1);
}

TEST(DiskLayout, DefaultsOfTwoArchitectures) {
  const auto list = plan_layout(amd64(), 4 * kGiB);
  ASSERT_TRUE(list);
  EXPECT_THAT(labels(*list), testing::ElementsAre("rasupd-bios", "RASUPD-ESP", "rasupd-root"));
  check_sound(*list, 4 * kGiB);
  EXPECT_EQ((*list)[0].start, 34 * kSector);
  EXPECT_EQ((*list)[0].start + (*list)[0].size, kMiB);
  EXPECT_EQ((*list)[1].size, 256 * kMiB);
  EXPECT_EQ((*list)[2].size, 4 * kGiB - 258 * kMiB);  // one MiB in front, one for the backup table

  LayoutRequest arm = amd64();
  arm.architecture = "arm64";
  const auto other = plan_layout(arm, 4 * kGiB);
  ASSERT_TRUE(other);
  EXPECT_THAT(labels(*other), testing::ElementsAre("RASUPD-ESP", "rasupd-root"));
  EXPECT_NE((*other)[1].type, (*list)[2].type);
}

TEST(DiskLayout, TheOpenPartitionIsTheLast) {
  LayoutRequest request = amd64();
  request.boot_size = 500 * kMiB;
  request.var_size = kGiB;
  const auto open_root = plan_layout(request, 8 * kGiB);
  ASSERT_TRUE(open_root);
  EXPECT_THAT(labels(*open_root),
              testing::ElementsAre("rasupd-bios", "RASUPD-ESP", "rasupd-boot", "rasupd-var", "rasupd-root"));
  check_sound(*open_root, 8 * kGiB);
  request.var_size.reset();
  request.var_rest = true;
  request.root_size = 2 * kGiB + 1;
  const auto open_var = plan_layout(request, 8 * kGiB);
  ASSERT_TRUE(open_var);
  EXPECT_EQ(open_var->back().name, "rasupd-var");
  EXPECT_EQ(find_partition(*open_var, PartitionUse::root)->size, 2 * kGiB + kMiB);  // rounded up
  check_sound(*open_var, 8 * kGiB);
}

TEST(DiskLayout, EveryDiskSizeIsSoundOrTooSmall) {
  for (std::uint64_t disk = 0; disk < 700 * kMiB; disk += 13 * kMiB + 7 * kSector) {
    const auto list = plan_layout(amd64(), disk);
    if (list) {
      check_sound(*list, disk);
    } else {
      EXPECT_EQ(list.error().kind, Kind::NoSpace);
      EXPECT_LT(disk, 323 * kMiB);
    }
  }
}

TEST(DiskLayout, RefusesWhatCannotBe) {
  LayoutRequest request = amd64();
  request.var_rest = true;
  EXPECT_EQ(plan_layout(request, 8 * kGiB).error().kind, Kind::Usage);
  request = amd64();
  request.file_system = "xfs";
  request.root_size = 299 * kMiB;
  EXPECT_EQ(plan_layout(request, 8 * kGiB).error().kind, Kind::Usage);
  request.root_size = 300 * kMiB;
  EXPECT_TRUE(plan_layout(request, 8 * kGiB));
  request.root_size = 9 * kGiB;
  const auto large = plan_layout(request, 8 * kGiB);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().kind, Kind::NoSpace);
  EXPECT_THAT(large.error().message, testing::HasSubstr("8192 MiB there"));
}

TEST(DiskLayout, SgdiskGetsInclusiveSectors) {
  const auto list = plan_layout(amd64(), 4 * kGiB);
  ASSERT_TRUE(list);
  const auto words = sgdisk_arguments(*list);
  ASSERT_EQ(words.size(), 10u);
  EXPECT_EQ(words[0], "--set-alignment=1");
  EXPECT_EQ(words[1], "--new=1:34:2047");
  EXPECT_EQ(words[4], "--new=2:2048:526335");
  EXPECT_EQ(words[6], "--change-name=2:RASUPD-ESP");
}

TEST(DiskLayout, Sizes) {
  EXPECT_EQ(parse_size("512M", "--x").value(), 512 * kMiB);
  EXPECT_EQ(parse_size("2GiB", "--x").value(), 2 * kGiB);
  EXPECT_EQ(parse_size("1048576", "--x").value(), kMiB);
  for (const char* wrong :
       {"", "0", "M", "-1M", "1MB", "1.5G", "1 G", "2048T", "99999999999999999999", "1Gi"}) {
    const auto size = parse_size(wrong, "--x");
    ASSERT_FALSE(size) << wrong;
    EXPECT_EQ(size.error().kind, Kind::Usage) << wrong;
  }
}

}  // namespace
}  // namespace rasupd
