#pragma once
// Three trees and a target in a temporary directory, with a sentinel folder outside of all of them.

#include <gtest/gtest.h>

#include <optional>

#include "base/files.hpp"
#include "deploy/etc_merge.hpp"
#include "tree.hpp"

namespace rasupd::test {

class MergeTest : public ::testing::Test {
 protected:
  MergeTest() {
    char name[] = "/tmp/rasupd-etc-XXXXXX";
    if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp");
    top_ = name;
    for (const char* folder : {"base", "local", "vendor", "outside"}) {
      write_entry(top_, folder, dir());
    }
    write_entry(top_ + "/outside", "sentinel", file("untouched"));
    outside_ = read_tree(top_ + "/outside");
    fresh_target();
  }
  ~MergeTest() override { std::filesystem::remove_all(top_); }

  void fresh_target() {
    std::filesystem::remove_all(top_ + "/target");
    write_entry(top_, "target", dir(0700));
  }
  void write(const Tree& base, const Tree& local, const Tree& vendor) {
    write_tree(top_ + "/base", base);
    write_tree(top_ + "/local", local);
    write_tree(top_ + "/vendor", vendor);
  }
  Fd at(const std::string& folder) const { return *open_directory(top_ + "/" + folder); }
  Result<EtcPlan> plan() const {
    return plan_etc_merge(at("base").get(), at("local").get(), at("vendor").get());
  }
  Result<std::vector<EtcNote>> apply(const EtcPlan& plan) const {
    return apply_etc_merge(plan, at("local").get(), at("vendor").get(), at("target").get());
  }
  /// Plans, applies, and returns what the target holds. A failure of either fails the test.
  Tree merged() {
    auto made = plan();
    if (!made) {
      ADD_FAILURE() << made.error().message;
      return {};
    }
    plan_ = std::move(*made);
    const auto done = apply(plan_);
    if (!done) {
      ADD_FAILURE() << done.error().message;
      return {};
    }
    late_notes_ = *done;
    expect_outside_untouched();
    return read_tree(top_ + "/target");
  }
  void expect_outside_untouched() const {
    EXPECT_EQ(read_tree(top_ + "/outside"), outside_);
    EXPECT_EQ(read_entry(top_ + "/outside"), dir());
  }
  /// The notes on `path`, one per line.
  std::string notes(const std::string& path) const {
    std::string text;
    for (const auto& note : plan_.notes) {
      if (note.path == path) text += note.what + "\n";
    }
    return text;
  }

  std::string top_;
  Tree outside_;
  EtcPlan plan_;
  std::vector<EtcNote> late_notes_;
};

}  // namespace rasupd::test
