// The matrix of docs/etc-merge.md, one row per cell: three versions of one path, what becomes of it, what is
// said.

#include <gmock/gmock.h>

#include "merge_fixture.hpp"

namespace rasupd::test {
namespace {

struct Cell {
  const char* name;
  Tree base, local, vendor;
  Tree expected;
  const char* note = "";      ///< a part of the note on `x`; empty: none at all
  const char* conflict = "";  ///< "local kind/vendor kind" when it cannot be merged
};
void PrintTo(const Cell& cell, std::ostream* out) {
  *out << cell.name;
}

class Matrix : public MergeTest, public ::testing::WithParamInterface<Cell> {};

TEST_P(Matrix, Cell) {
  const Cell& cell = GetParam();
  write(cell.base, cell.local, cell.vendor);
  if (*cell.conflict != '\0') {
    const auto made = plan();
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_EQ(made->conflicts.size(), 1u);
    const auto& conflict = made->conflicts[0];
    EXPECT_EQ(conflict.path, "x");
    EXPECT_EQ(
        std::string(file_kind_name(conflict.local)) + "/" + std::string(file_kind_name(conflict.vendor)),
        cell.conflict);
    EXPECT_FALSE(conflict.why.empty());
    EXPECT_TRUE(made->notes.empty());
    const auto applied = apply(*made);
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().kind, Kind::Unsuitable);
    EXPECT_TRUE(read_tree(top_ + "/target").empty());
    return;
  }
  EXPECT_EQ(merged(), cell.expected);
  EXPECT_TRUE(late_notes_.empty());
  if (*cell.note == '\0') {
    EXPECT_EQ(notes("x"), "");
  } else {
    EXPECT_THAT(notes("x"), testing::HasSubstr(cell.note));
  }
}

std::string name_of(const testing::TestParamInfo<Cell>& info) {
  return info.param.name;
}

Tree one(const Entry& entry) {
  return {{"x", entry}};
}
const Tree kNone;
const Tree kDirOfVendor = {{"x", dir()}, {"x/v", file("v")}};
const Tree kDirOfLocal = {{"x", dir()}, {"x/l", file("l")}};

const Cell kFiles[] = {
    // local unchanged
    {"unchanged_unchanged", one(file("b")), one(file("b")), one(file("b")), one(file("b"))},
    {"unchanged_modified", one(file("b")), one(file("b")), one(file("v")), one(file("v"))},
    {"unchanged_mode", one(file("b")), one(file("b")), one(file("b", 0600)), one(file("b", 0600))},
    {"unchanged_deleted", one(file("b")), one(file("b")), kNone, kNone},
    {"unchanged_to_directory", one(file("b")), one(file("b")), kDirOfVendor, kDirOfVendor},
    {"unchanged_to_symlink", one(file("b")), one(file("b")), one(link("t")), one(link("t"))},
    // local content modified
    {"modified_unchanged", one(file("b")), one(file("l")), one(file("b")), one(file("l"))},
    {"modified_modified", one(file("b")), one(file("l")), one(file("v")), one(file("l")),
     "kept the local file; the image changed its default too"},
    {"modified_same", one(file("b")), one(file("n")), one(file("n")), one(file("n"))},
    {"modified_mode", one(file("b")), one(file("l")), one(file("b", 0600)), one(file("l", 0600))},
    {"modified_same_length", one(file("bbb")), one(file("lll")), one(file("bbb")), one(file("lll"))},
    {"modified_deleted", one(file("b")), one(file("l")), kNone, one(file("l")),
     "kept the local file; the image removed its default"},
    {"modified_to_directory", one(file("b")), one(file("l")), kDirOfVendor, {}, "", "file/directory"},
    {"modified_to_symlink", one(file("b")), one(file("l")), one(link("t")), one(file("l")),
     "made a symlink of its default"},
    // local chmod only
    {"chmod_unchanged", one(file("b")), one(file("b", 0600)), one(file("b")), one(file("b", 0600))},
    {"chmod_modified", one(file("b")), one(file("b", 0600)), one(file("v")), one(file("v", 0600))},
    {"chmod_both", one(file("b")), one(file("b", 0600)), one(file("v", 0640)), one(file("v", 0600)),
     "kept the local mode"},
    {"chmod_both_same", one(file("b")), one(file("b", 0600)), one(file("v", 0600)), one(file("v", 0600))},
    {"chmod_deleted", one(file("b")), one(file("b", 0600)), kNone, kNone, "dropped the local mode"},
    {"chmod_to_directory", one(file("b")), one(file("b", 0600)), kDirOfVendor, kDirOfVendor,
     "dropped the local mode"},
    {"chmod_to_symlink", one(file("b")), one(file("b", 0600)), one(link("t")), one(link("t")),
     "dropped the local mode"},
    {"chmod_setuid", one(file("b", 0755)), one(file("b", 04755)), one(file("v", 0755)),
     one(file("v", 04755))},
    {"setuid_dropped_here", one(file("b", 04755)), one(file("b", 0755)), one(file("v", 04755)),
     one(file("v", 0755))},
    // local owner only
    {"owner_unchanged", one(file("b")), one(file("b").with_owner(7, 8)), one(file("b")),
     one(file("b").with_owner(7, 8))},
    {"owner_modified", one(file("b")), one(file("b").with_owner(7, 8)), one(file("v", 0600)),
     one(file("v", 0600).with_owner(7, 8))},
    {"owner_setuid", one(file("b", 04755)), one(file("b", 04755).with_owner(7, 8)), one(file("v", 04755)),
     one(file("v", 04755).with_owner(7, 8))},
    {"owner_deleted", one(file("b")), one(file("b").with_owner(7, 8)), kNone, kNone,
     "dropped the local mode, owner"},
    {"owner_of_vendor", one(file("b")), one(file("b", 0600)), one(file("b").with_owner(5, 5)),
     one(file("b", 0600).with_owner(5, 5))},
    {"owner_both", one(file("b")), one(file("b").with_owner(7, 8)), one(file("b").with_owner(5, 5)),
     one(file("b").with_owner(7, 8)), "kept the local owner"},
    // local xattr only
    {"xattr_unchanged", one(file("b")), one(file("b").with_xattr("user.l", "1")), one(file("b")),
     one(file("b").with_xattr("user.l", "1"))},
    {"xattr_modified", one(file("b")), one(file("b").with_xattr("user.l", "1")),
     one(file("v").with_xattr("user.v", "2")),
     one(file("v").with_xattr("user.l", "1").with_xattr("user.v", "2"))},
    {"xattr_removed_here", one(file("b").with_xattr("user.b", "1")), one(file("b")),
     one(file("v").with_xattr("user.b", "1")), one(file("v"))},
    {"xattr_removed_by_vendor", one(file("b").with_xattr("user.b", "1")),
     one(file("l").with_xattr("user.b", "1")), one(file("b")), one(file("l"))},
    {"xattr_both", one(file("b").with_xattr("user.b", "1")), one(file("b").with_xattr("user.b", "2")),
     one(file("b").with_xattr("user.b", "3")), one(file("b").with_xattr("user.b", "2")),
     "kept the local xattr user.b"},
    {"xattr_deleted", one(file("b")), one(file("b").with_xattr("user.l", "1")), kNone, kNone, "xattr"},
    {"xattr_to_directory", one(file("b")), one(file("b").with_xattr("user.l", "1")), kDirOfVendor,
     kDirOfVendor, "xattr"},
    // local deleted
    {"deleted_unchanged", one(file("b")), kNone, one(file("b")), kNone},
    {"deleted_modified", one(file("b")), kNone, one(file("v")), kNone,
     "kept deleted; the image changed its default"},
    {"deleted_deleted", one(file("b")), kNone, kNone, kNone},
    {"deleted_to_directory", one(file("b")), kNone, kDirOfVendor, kNone,
     "kept deleted; the image changed its default"},
    {"deleted_to_symlink", one(file("b")), kNone, one(link("t")), kNone,
     "kept deleted; the image changed its default"},
    // local file -> directory
    {"to_directory_unchanged", one(file("b")), kDirOfLocal, one(file("b")), kDirOfLocal},
    {"to_directory_modified", one(file("b")), kDirOfLocal, one(file("v")), kDirOfLocal,
     "kept the local directory; the image changed the default"},
    {"to_directory_deleted", one(file("b")), kDirOfLocal, kNone, kDirOfLocal,
     "kept the local directory; the image removed the default"},
    {"to_directory_both",
     one(file("b")),
     kDirOfLocal,
     kDirOfVendor,
     {{"x", dir()}, {"x/l", file("l")}, {"x/v", file("v")}}},
    {"to_directory_to_symlink", one(file("b")), kDirOfLocal, one(link("t")), kDirOfLocal,
     "kept the local directory"},
    // local file -> symlink
    {"to_symlink_unchanged", one(file("b")), one(link("l")), one(file("b")), one(link("l"))},
    {"to_symlink_modified", one(file("b")), one(link("l")), one(file("v")), one(link("l")),
     "kept the local symlink"},
    {"to_symlink_deleted", one(file("b")), one(link("l")), kNone, one(link("l")),
     "the image removed its default"},
    {"to_symlink_to_directory", one(file("b")), one(link("l")), kDirOfVendor, {}, "", "symlink/directory"},
    {"to_symlink_both", one(file("b")), one(link("l")), one(link("v")), one(link("l")),
     "kept the local symlink"},
    {"to_symlink_both_same", one(file("b")), one(link("n")), one(link("n")), one(link("n"))},
    // local file -> special
    {"to_fifo_unchanged", one(file("b")), one(fifo(0640)), one(file("b")), one(fifo(0640))},
    {"to_fifo_modified", one(file("b")), one(fifo()), one(file("v")), one(fifo()), "kept the local fifo"},
    {"to_fifo_deleted", one(file("b")), one(fifo()), kNone, one(fifo()), "kept the local fifo"},
    {"to_fifo_to_directory", one(file("b")), one(fifo()), kDirOfVendor, {}, "", "fifo/directory"},
    {"to_device_unchanged", one(file("b")), one(device()), one(file("b")), one(device())},
    {"to_socket_unchanged", one(file("b")), one(socket_file()), one(file("b")), kNone, "dropped the socket"},
    {"to_socket_deleted", one(file("b")), one(socket_file()), kNone, kNone, "dropped the socket"},
};
INSTANTIATE_TEST_SUITE_P(File, Matrix, testing::ValuesIn(kFiles), name_of);

const Cell kSymlinks[] = {
    {"target_of_vendor", one(link("b")), one(link("b")), one(link("v")), one(link("v"))},
    {"target_of_local", one(link("b")), one(link("l")), one(link("b")), one(link("l"))},
    {"target_both", one(link("b")), one(link("l")), one(link("v")), one(link("l")), "kept the local symlink"},
    {"vendor_made_a_file", one(link("b")), one(link("b")), one(file("v")), one(file("v"))},
    {"local_made_a_file", one(link("b")), one(file("l")), one(link("b")), one(file("l"))},
    {"local_made_a_file_vendor_moved", one(link("b")), one(file("l")), one(link("v")), one(file("l")),
     "kept the local file"},
    {"vendor_made_a_directory", one(link("b")), one(link("b")), kDirOfVendor, kDirOfVendor},
    {"vendor_made_a_directory_of_a_changed_one",
     one(link("b")),
     one(link("l")),
     kDirOfVendor,
     {},
     "",
     "symlink/directory"},
    {"owner_of_a_symlink", one(link("b")), one(link("b").with_owner(7, 8)), one(link("v")),
     one(link("v").with_owner(7, 8))},
    {"dangling_and_absolute", kNone, one(link("/nowhere/at/all")), kNone, one(link("/nowhere/at/all"))},
};
INSTANTIATE_TEST_SUITE_P(Symlink, Matrix, testing::ValuesIn(kSymlinks), name_of);

const Cell kAdded[] = {
    {"local", kNone, one(file("l", 0600)), kNone, one(file("l", 0600))},
    {"vendor", kNone, kNone, one(file("v", 0600)), one(file("v", 0600))},
    {"both_same", kNone, one(file("n")), one(file("n")), one(file("n"))},
    {"both_files", kNone, one(file("l", 0600)), one(file("v").with_xattr("user.v", "1")),
     one(file("l", 0600)), "the image added a file there too"},
    {"both_same_content_other_mode", kNone, one(file("n", 0600)), one(file("n")), one(file("n", 0600)),
     "kept the local mode"},
    {"file_and_symlink", kNone, one(file("l")), one(link("v")), one(file("l")),
     "the image added a symlink there too"},
    {"both_directories",
     kNone,
     kDirOfLocal,
     kDirOfVendor,
     {{"x", dir()}, {"x/l", file("l")}, {"x/v", file("v")}}},
    {"both_directories_other_mode",
     kNone,
     one(dir(0700)),
     kDirOfVendor,
     {{"x", dir(0700)}, {"x/v", file("v")}},
     "kept the local mode"},
    {"directory_and_file", kNone, kDirOfLocal, one(file("v")), {}, "", "directory/file"},
    {"directory_and_symlink", kNone, kDirOfLocal, one(link("v")), {}, "", "directory/symlink"},
    {"file_and_directory", kNone, one(file("l")), kDirOfVendor, {}, "", "file/directory"},
    {"symlink_and_directory", kNone, one(link("l")), kDirOfVendor, {}, "", "symlink/directory"},
    {"empty_directory", kNone, one(dir(0700)), kNone, one(dir(0700))},
    {"fifo", kNone, one(fifo(0600)), kNone, one(fifo(0600))},
    {"device", kNone, one(device()), kNone, one(device())},
    {"socket", kNone, one(socket_file()), kNone, kNone, "dropped the socket"},
    {"socket_and_file", kNone, one(socket_file()), one(file("v")), one(file("v")), "dropped the socket"},
    {"specials_in_a_directory",
     kNone,
     {{"x", dir()}, {"x/p", fifo()}, {"x/c", device()}, {"x/s", socket_file()}},
     kNone,
     {{"x", dir()}, {"x/p", fifo()}, {"x/c", device()}}},
};
INSTANTIATE_TEST_SUITE_P(Added, Matrix, testing::ValuesIn(kAdded), name_of);

const Tree kDir = {{"x", dir()}, {"x/a", file("a")}, {"x/b", file("b")}};
Tree with(Tree tree, const std::string& path, const Entry& entry) {
  tree[path] = entry;
  return tree;
}
Tree without(Tree tree, const std::string& path) {
  tree.erase(path);
  return tree;
}

const Cell kDirectories[] = {
    // its own attributes
    {"chmod_here", kDir, with(kDir, "x", dir(0700)), kDir, with(kDir, "x", dir(0700))},
    {"owner_here", kDir, with(kDir, "x", dir().with_owner(7, 8)), kDir,
     with(kDir, "x", dir().with_owner(7, 8))},
    {"xattr_here", kDir, with(kDir, "x", dir().with_xattr("user.l", "1")), kDir,
     with(kDir, "x", dir().with_xattr("user.l", "1"))},
    {"tightened_by_vendor", kDir, kDir, with(kDir, "x", dir(0700)), with(kDir, "x", dir(0700))},
    {"tightened_with_a_local_file",
     kDir,
     with(kDir, "x/l", file("l")),
     with(kDir, "x", dir(0700)),
     {{"x", dir(0700)}, {"x/a", file("a")}, {"x/b", file("b")}, {"x/l", file("l")}}},
    {"owner_of_vendor_with_a_local_edit",
     kDir,
     with(kDir, "x/a", file("l")),
     with(kDir, "x", dir().with_owner(5, 5)),
     {{"x", dir().with_owner(5, 5)}, {"x/a", file("l")}, {"x/b", file("b")}}},
    {"chmod_both", kDir, with(kDir, "x", dir(0711)), with(kDir, "x", dir(0700)), with(kDir, "x", dir(0711)),
     "kept the local mode"},
    {"chmod_here_file_there",
     kDir,
     with(kDir, "x", dir(0700)),
     with(kDir, "x/v", file("v")),
     {{"x", dir(0700)}, {"x/a", file("a")}, {"x/b", file("b")}, {"x/v", file("v")}}},
    // the image removed it
    {"removed", kDir, kDir, kNone, kNone},
    {"removed_chmod_here", kDir, with(kDir, "x", dir(0700)), kNone, kNone, "dropped the local mode"},
    {"removed_file_chmod_here", kDir, with(kDir, "x/a", file("a", 0600)), kNone, kNone},
    {"removed_file_deleted_here", kDir, without(kDir, "x/a"), kNone, kNone},
    {"removed_file_added_here",
     kDir,
     with(with(kDir, "x", dir(0750)), "x/l", file("l")),
     kNone,
     {{"x", dir(0750)}, {"x/l", file("l")}}},
    {"removed_file_changed_here",
     kDir,
     with(kDir, "x/a", file("l")),
     kNone,
     {{"x", dir()}, {"x/a", file("l")}}},
    {"removed_socket_here", kDir, with(kDir, "x/s", socket_file()), kNone, kNone},
    // removed here
    {"deleted_here", kDir, kNone, kDir, kNone},
    {"deleted_here_file_added_there", kDir, kNone, with(kDir, "x/v", file("v")), kNone,
     "kept deleted; the image changed its default"},
    {"deleted_here_file_removed_there", kDir, kNone, without(kDir, "x/b"), kNone,
     "kept deleted; the image changed its default"},
    {"deleted_here_symlink_there", kDir, kNone, one(link("v")), kNone,
     "kept deleted; the image changed its default"},
    {"empty_deleted_here", one(dir()), kNone, one(dir()), kNone},
    {"emptied_here", kDir, one(dir()), with(kDir, "x/v", file("v")), {{"x", dir()}, {"x/v", file("v")}}},
    // a symlink or file here
    {"symlink_here", kDir, one(link("/var/x")), kDir, one(link("/var/x"))},
    {"symlink_here_changes_there", kDir, one(link("/var/x")), with(kDir, "x/a", file("v")),
     one(link("/var/x")), "the image changed things inside it"},
    {"symlink_here_file_added_there", kDir, one(link("/var/x")), with(kDir, "x/v", file("v")),
     one(link("/var/x")), "the image changed things inside it"},
    {"symlink_here_removed_there", kDir, one(link("/var/x")), kNone, one(link("/var/x")),
     "the image removed its default"},
    {"symlink_here_file_there", kDir, one(link("/var/x")), one(file("v")), one(link("/var/x")),
     "kept the local symlink"},
    {"symlink_here_symlink_there", kDir, one(link("l")), one(link("v")), one(link("l")),
     "kept the local symlink"},
    {"symlink_both_same", kDir, one(link("n")), one(link("n")), one(link("n"))},
    {"file_here", kDir, one(file("l")), kDir, one(file("l"))},
    {"socket_here", kDir, one(socket_file()), kDir, kNone, "dropped the socket"},
    // a symlink or file there
    {"symlink_there", kDir, kDir, one(link("v")), one(link("v"))},
    {"symlink_there_deleted_inside", kDir, without(kDir, "x/a"), one(link("v")), one(link("v"))},
    {"symlink_there_chmod_here", kDir, with(kDir, "x", dir(0700)), one(link("v")), one(link("v")),
     "dropped the local mode"},
    {"symlink_there_added_inside",
     kDir,
     with(kDir, "x/l", file("l")),
     one(link("v")),
     {},
     "",
     "directory/symlink"},
    {"symlink_there_changed_inside",
     kDir,
     with(kDir, "x/a", file("l")),
     one(link("v")),
     {},
     "",
     "directory/symlink"},
    {"symlink_there_directory_added_inside",
     kDir,
     with(kDir, "x/d", dir()),
     one(link("v")),
     {},
     "",
     "directory/symlink"},
    {"file_there", kDir, kDir, one(file("v")), one(file("v"))},
    {"file_there_deleted_inside", kDir, without(kDir, "x/a"), one(file("v")), one(file("v"))},
    {"file_there_added_inside", kDir, with(kDir, "x/l", file("l")), one(file("v")), {}, "", "directory/file"},
    {"file_there_changed_inside",
     kDir,
     with(kDir, "x/a", file("l")),
     one(file("v")),
     {},
     "",
     "directory/file"},
};
INSTANTIATE_TEST_SUITE_P(Directory, Matrix, testing::ValuesIn(kDirectories), name_of);

}  // namespace
}  // namespace rasupd::test
