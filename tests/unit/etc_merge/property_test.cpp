// Invariants over random small trees. The seeds are fixed: a failure names its seed and comes back with it.

#include <random>
#include <set>

#include "deploy/etc_action.hpp"
#include "merge_fixture.hpp"

namespace rasupd::test {
namespace {

constexpr unsigned kRounds = 300;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  unsigned below(unsigned n) {
    return static_cast<unsigned>(engine_() % n);
  }  // the same everywhere, unlike distributions
  bool once_in(unsigned n) { return below(n) == 0; }

  Entry entry(bool allow_directory) {
    Entry made;
    switch (below(allow_directory ? 8 : 5)) {
      case 0:
        made = link(below(2) ? "one" : "/two");
        break;
      case 1:
        made = fifo();
        break;
      case 2:
      case 3:
      case 4:
        made = file(below(2) ? "one" : "two");
        break;
      default:
        made = dir();
        break;
    }
    if (once_in(3)) change_attributes(made);
    return made;
  }
  void change_attributes(Entry& entry) {
    static const unsigned kModes[] = {0600, 0644, 0700, 0755, 02750, 04755};
    switch (below(3)) {
      case 0:
        if (entry.kind != 'l') entry.mode = kModes[below(6)];
        break;
      case 1:
        entry.uid = below(3), entry.gid = below(3);
        break;
      default:
        if (entry.kind == 'f' || entry.kind == 'd')
          entry.xattrs[below(2) ? "user.a" : "user.b"] = below(2) ? "1" : "2";
    }
  }
  void fill(Tree& tree, const std::string& below_path, int depth) {
    for (const char* name : {"a", "b", "c"}) {
      if (once_in(3)) continue;
      const std::string path = below_path + name;
      tree[path] = entry(depth > 0);
      if (tree[path].kind == 'd') fill(tree, path + "/", depth - 1);
    }
  }
  /// A version of `from` with a few edits of every sort.
  Tree edited(const Tree& from) {
    Tree tree = from;
    for (const auto& [path, entry] : from) {
      if (!tree.count(path) || !once_in(4)) continue;
      switch (below(4)) {
        case 0:
          erase(tree, path);
          break;
        case 1:
          change_attributes(tree[path]);
          break;
        case 2:
          if (entry.kind == 'f') tree[path].data = below(2) ? "one" : "edited";
          break;
        default:
          replace(tree, path);
          break;
      }
    }
    std::set<std::string> folders = {""};
    for (const auto& [path, entry] : tree) {
      if (entry.kind == 'd') folders.insert(path + "/");
    }
    for (const auto& folder : folders) {
      const std::string path = folder + (below(2) ? "new" : "c");
      if (once_in(4) && !tree.count(path)) tree[path] = entry(true);
    }
    return tree;
  }

 private:
  static void erase(Tree& tree, const std::string& path) {
    std::erase_if(tree,
                  [&](const auto& item) { return item.first == path || item.first.starts_with(path + "/"); });
  }
  void replace(Tree& tree, const std::string& path) {
    erase(tree, path);
    tree[path] = entry(true);
    if (tree[path].kind == 'd' && below(2)) tree[path + "/in"] = entry(false);
  }
  std::mt19937 engine_;
};

class Property : public MergeTest {
 protected:
  void start(const Tree& base, const Tree& local, const Tree& vendor) {
    for (const char* folder : {"base", "local", "vendor"}) {
      std::filesystem::remove_all(top_ + "/" + folder);
      write_entry(top_, folder, dir());
    }
    fresh_target();
    write(base, local, vendor);
  }
};

TEST_F(Property, AnUntouchedMachineGetsTheVendors) {
  for (unsigned seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Tree base;
    random.fill(base, "", 2);
    const Tree vendor = random.edited(base);
    start(base, base, vendor);
    ASSERT_EQ(merged(), vendor);
    ASSERT_TRUE(plan_.changes.empty() && plan_.notes.empty() && plan_.actions.empty());
  }
}

TEST_F(Property, AnUnchangedImageKeepsTheMachines) {
  for (unsigned seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Tree base;
    random.fill(base, "", 2);
    const Tree local = random.edited(base);
    start(base, local, base);
    ASSERT_EQ(merged(), local);
    ASSERT_TRUE(plan_.notes.empty());
    ASSERT_EQ(plan_.changes.empty(), base == local);
  }
}

/// The rule for one attribute, said a second time: the local side where it differs from base, else the
/// vendor's.
template <class T>
T three_way(const T& base, const T& local, const T& vendor) {
  return local != base ? local : vendor;
}

/// Where all three sides have the same kind of leaf in surviving directories the outcome is known attribute
/// by attribute.
void expect_leaf(const Entry& base, const Entry& local, const Entry& vendor, const Entry& got) {
  EXPECT_EQ(got.data, three_way(base.data, local.data, vendor.data));
  EXPECT_EQ(got.mode, three_way(base.mode, local.mode, vendor.mode));
  EXPECT_EQ(std::pair(got.uid, got.gid),
            three_way(std::pair(base.uid, base.gid), std::pair(local.uid, local.gid),
                      std::pair(vendor.uid, vendor.gid)));
  for (const char* name : {"user.a", "user.b"}) {
    const auto of = [&](const Entry& entry) {
      return entry.xattrs.count(name) ? entry.xattrs.at(name) : std::string();
    };
    EXPECT_EQ(of(got), three_way(of(base), of(local), of(vendor))) << name;
  }
}

TEST_F(Property, APlanHasConflictsOrApplies) {
  unsigned conflicts = 0, leaves = 0;
  for (unsigned seed = 0; seed < 2 * kRounds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Tree base;
    random.fill(base, "", 2);
    const Tree local = random.edited(base), vendor = random.edited(base);
    start(base, local, vendor);
    const auto made = plan();
    ASSERT_TRUE(made) << made.error().message;
    const auto again = plan();
    ASSERT_EQ(again->actions.size(), made->actions.size());
    for (std::size_t i = 0; i < made->actions.size(); ++i)
      ASSERT_EQ(again->actions[i].path, made->actions[i].path);
    if (!made->conflicts.empty()) {
      ++conflicts;
      ASSERT_FALSE(apply(*made));
      ASSERT_TRUE(read_tree(top_ + "/target").empty());
      continue;
    }
    const auto applied = apply(*made);
    ASSERT_TRUE(applied) << applied.error().message;
    const Tree result = read_tree(top_ + "/target");
    expect_outside_untouched();
    ASSERT_EQ(read_tree(top_ + "/base"), base);
    ASSERT_EQ(read_tree(top_ + "/local"), local);
    ASSERT_EQ(read_tree(top_ + "/vendor"), vendor);
    for (const auto& [path, entry] : base) {
      if (entry.kind == 'd' || !local.count(path) || !vendor.count(path)) continue;
      if (local.at(path).kind != entry.kind || vendor.at(path).kind != entry.kind) continue;
      ++leaves;
      ASSERT_TRUE(result.count(path)) << path;
      expect_leaf(entry, local.at(path), vendor.at(path), result.at(path));
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(conflicts, 20u);  // the generator reaches both outcomes
  EXPECT_GT(leaves, 100u);
}

/// The next update starts from the vendor and the merged /etc: with no news in it, nothing moves.
TEST_F(Property, MergingAgainChangesNothing) {
  for (unsigned seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Tree base;
    random.fill(base, "", 2);
    const Tree local = random.edited(base), vendor = random.edited(base);
    start(base, local, vendor);
    auto made = plan();
    ASSERT_TRUE(made);
    if (!made->conflicts.empty()) continue;
    const bool plain = made->actions.empty();
    const Tree result = merged();
    ASSERT_EQ(plain, result == vendor);  // the dry run says exactly whether the machine keeps anything
    start(vendor, result, vendor);
    ASSERT_EQ(merged(), result);
    ASSERT_TRUE(plan_.notes.empty());
  }
}

}  // namespace
}  // namespace rasupd::test
