#include "config/settings.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rasupd {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "rasupd-settings-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  Result<Settings> load(bool strict = true) { return load_settings(root_.string(), strict); }

  fs::path root_;
};

TEST_F(SettingsTest, NoFilesGiveDefaults) {
  const auto settings = load();
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->parallel, 2u);
  EXPECT_EQ(settings->stall_seconds, 30u);
  EXPECT_TRUE(settings->unverified_scopes.empty());
}

TEST_F(SettingsTest, LaterFilesWinByKey) {
  write("usr/lib/rasupd/rasupd.conf", "[import]\nparallel=3\n[download]\nretries=1\n");
  write("usr/lib/rasupd/rasupd.conf.d/10.conf", "[import]\nparallel=4\n");
  write("etc/rasupd/rasupd.conf", "[import]\nparallel=5\n");
  write("etc/rasupd/rasupd.conf.d/20-b.conf", "[import]\nparallel=7\n");
  write("etc/rasupd/rasupd.conf.d/10-a.conf", "[import]\nparallel=6\n");
  write("etc/rasupd/rasupd.conf.d/30.txt", "[import]\nparallel=9\n");
  const auto settings = load();
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->parallel, 7u);
  EXPECT_EQ(settings->retries, 1u);
}

TEST_F(SettingsTest, ReadsListsAndSizes) {
  write("etc/rasupd/rasupd.conf", "[trust]\nunverified_scopes=docker:a.example/b; oci:/images ;\n[space]\nreserve=2G\n");
  const auto settings = load();
  ASSERT_TRUE(settings);
  EXPECT_THAT(settings->unverified_scopes, ElementsAre("docker:a.example/b", "oci:/images"));
  EXPECT_EQ(settings->reserve, 2ull << 30);
}

TEST_F(SettingsTest, UnknownKeyIsConfigWithFileAndLine) {
  write("etc/rasupd/rasupd.conf", "# comment\n[import]\n\nparalel=3\n");
  const auto settings = load();
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().kind, Kind::Config);
  EXPECT_THAT(settings.error().message, HasSubstr("etc/rasupd/rasupd.conf:4"));
  EXPECT_THAT(settings.error().message, HasSubstr("paralel"));
}

TEST_F(SettingsTest, BadValuesAreRefused) {
  for (const char* line : {"[import]\nparallel=0\n", "[import]\nparallel=two\n", "[download]\nstall_seconds=-1\n",
                           "[space]\nreserve=12X\n", "[import]\nparallel=99999999999999999999\n"}) {
    write("etc/rasupd/rasupd.conf", line);
    const auto settings = load();
    ASSERT_FALSE(settings) << line;
    EXPECT_EQ(settings.error().kind, Kind::Config) << line;
  }
}

TEST_F(SettingsTest, LenientReaderWarnsAndKeepsDefaults) {
  write("etc/rasupd/rasupd.conf", "[import]\nparallel=0\nwhat=1\n");
  const auto settings = load(false);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->parallel, 2u);
  EXPECT_EQ(settings->warnings.size(), 2u);
}

TEST_F(SettingsTest, NotAKeyFileIsConfig) {
  write("etc/rasupd/rasupd.conf", "{\"json\": true}\n");
  ASSERT_FALSE(load());
  EXPECT_EQ(load().error().kind, Kind::Config);
  EXPECT_TRUE(load(false));
}

TEST_F(SettingsTest, KeysOfRoomsNotBuiltAreNamedNotRefused) {
  write("etc/rasupd/rasupd.conf", "[reboot]\njitter=3\n");
  const auto settings = load();
  ASSERT_TRUE(settings);
  ASSERT_EQ(settings->warnings.size(), 1u);
  EXPECT_THAT(settings->warnings[0], HasSubstr("reboot.jitter"));
}

}  // namespace
}  // namespace rasupd
