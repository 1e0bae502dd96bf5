// The registry client against a real server that misbehaves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/settings.hpp"
#include "fakes/fakes.hpp"
#include "source/source.hpp"
#include "support/hostile_registry.hpp"

namespace rasupd {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kSecret = "alice:s3cr3t-word";

std::string content() {
  std::string text;
  for (unsigned i = 0; text.size() < 300'000; ++i) text += std::to_string(i * 2654435761U);
  return text;
}

struct SourceTest : testing::Test {
  fakes::HostileRegistry server{content()};
  fakes::FakeWorld fake;
  Settings settings;

  SourceTest() {
    ::setenv("NO_PROXY", "127.0.0.1", 1);
    fake.world.config_root = server.root;
    settings.retries = 3;
    settings.stall_seconds = 1;
  }
  Source open(const std::string& rest = ":1") {
    return *Source::open(fake.world, *Reference::parse(server.reference(rest)), settings);
  }
  void fault(const std::string& action, const std::string& path = "*/blobs/*") {
    server.faults(R"({"faults":[{"path":")" + path + R"(",)" + action + "}]}");
  }
  Result<std::string> pull() { return open().small_blob(server.blob, 1 << 20); }
  void credentials() {
    server.write("etc/rasupd/auth.json", R"({"auths":{"127.0.0.1:)" + server.port + R"(":{"auth":")" +
                                             base64_encode(kSecret) + R"("}}})");
  }
};

TEST_F(SourceTest, resolves_and_streams) {
  auto source = open();
  auto document = source.resolve();
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(document->digest, server.manifest.digest);
  EXPECT_EQ(document->media_type, kOciManifest);
  EXPECT_TRUE(source.manifest(server.manifest));
  EXPECT_EQ(*source.small_blob(server.blob, 1 << 20), content());
  EXPECT_EQ(source.bytes_fetched(), content().size() + 2 * document->bytes.size());
  EXPECT_FALSE(*source.tagged("other"));
  EXPECT_THAT(server.log(), HasSubstr("rasupd/"));
  EXPECT_THAT(server.log(), Not(HasSubstr("accept-encoding")));
}

TEST_F(SourceTest, plain_http_needs_the_operators_word) {
  server.write("etc/containers/registries.conf", "");
  const auto document = open().resolve();
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().kind, Kind::Offline);
  EXPECT_EQ(server.log(), "");
}

TEST_F(SourceTest, cut_and_stalled_transfers_go_on_by_range) {
  for (const char* action :
       {R"("do":"cut","after":100000,"times":1)", R"("do":"stall","after":100000,"times":1)",
        R"("do":"truncate","after":100000,"times":1)"}) {
    fault(action);
    const auto got = pull();
    ASSERT_TRUE(got) << action << got.error().message;
    EXPECT_EQ(*got, content()) << action;
    EXPECT_THAT(server.log(), HasSubstr("bytes=100000-"));
  }
}

TEST_F(SourceTest, servers_without_or_with_wrong_ranges_still_give_the_whole) {
  for (const char* second : {R"("do":"no_range")", R"("do":"content_range","value":"bytes 5-299999/300000")",
                             R"("do":"status","status":416,"times":1)"}) {
    server.faults(R"({"faults":[{"path":"*/blobs/*[!x]","do":"cut","after":100000,"times":1}]})");
    auto source = open();
    const Reader reader = *source.blob(server.blob);
    std::string all;
    std::vector<std::byte> chunk(4096);
    for (bool switched = false;;) {
      const auto n = reader(chunk);
      ASSERT_TRUE(n) << second << n.error().message;
      if (*n == 0) break;
      all.append(reinterpret_cast<const char*>(chunk.data()), *n);
      if (!std::exchange(switched, true)) fault(second);
    }
    EXPECT_EQ(all, content()) << second;
  }
}

struct Case {
  const char* action;
  Kind kind;
  const char* text;
};

TEST_F(SourceTest, what_a_bad_blob_is) {
  const Case cases[] = {
      {R"("do":"alter","offset":7)", Kind::Untrusted, "is not what the manifest names: digest"},
      {R"("do":"endless")", Kind::Untrusted, "more than"},
      {R"("do":"pad","bytes":5)", Kind::Untrusted, "is not what the manifest names"},
      {R"("do":"truncate","after":1000)", Kind::Offline, "bytes"},
      {R"("do":"status","status":404)", Kind::Offline, "missing in the registry"},
      {R"("do":"status","status":403)", Kind::Denied, "auth.json"},
      {R"("do":"status","status":503)", Kind::Offline, "after 3 retries"},
      {R"("do":"stall","after":0)", Kind::Offline, "stalled"},
      {R"("do":"redirect","to":"{path}")", Kind::Offline, "redirects"},
  };
  for (const auto& c : cases) {
    fault(c.action);
    const auto got = pull();
    ASSERT_FALSE(got) << c.action;
    EXPECT_EQ(got.error().kind, c.kind) << c.action << got.error().message;
    EXPECT_THAT(got.error().message, HasSubstr(c.text)) << c.action;
  }
}

TEST_F(SourceTest, what_a_bad_manifest_is) {
  const Case cases[] = {
      {R"("do":"status","status":404)", Kind::NotFound, "no such"},
      {R"("do":"content_type","value":"text/html")", Kind::Untrusted, "not a manifest"},
      {R"("do":"pad","bytes":5000000)", Kind::Untrusted, "4 MiB"},
      {R"("do":"status","status":418)", Kind::Offline, "418"},
  };
  for (const auto& c : cases) {
    fault(c.action, "*/manifests/*");
    const auto got = open().resolve();
    ASSERT_FALSE(got) << c.action;
    EXPECT_EQ(got.error().kind, c.kind) << c.action << got.error().message;
    EXPECT_THAT(got.error().message, HasSubstr(c.text)) << c.action;
  }
  fault(R"("do":"alter","offset":3)", "*/manifests/*");
  EXPECT_EQ(open("@" + server.manifest.digest.str()).resolve().error().kind, Kind::Untrusted);
}

TEST_F(SourceTest, retry_after_is_kept) {
  fault(R"("do":"status","status":429,"times":1,"headers":{"Retry-After":"7"})");
  ASSERT_TRUE(pull());
  ASSERT_EQ(fake.clock.sleeps().size(), 1U);
  EXPECT_GE(fake.clock.sleeps()[0].count(), 7000);
  EXPECT_LE(fake.clock.sleeps()[0].count(), 8000);
}

TEST_F(SourceTest, a_stop_ends_a_stalled_transfer) {
  settings.stall_seconds = 60;
  fault(R"("do":"stall","after":10)");
  auto source = open();
  const Reader reader = *source.blob(server.blob);
  std::byte chunk[64];
  ASSERT_TRUE(reader(chunk));
  fake.stop.request_stop();
  EXPECT_EQ(reader(chunk).error().kind, Kind::Cancelled);
}

TEST_F(SourceTest, logs_in_by_password_and_by_token) {
  credentials();
  for (const char* type : {"basic", "bearer"}) {
    server.faults(std::string(R"({"auth":{"type":")") + type + R"(","users":{"alice":"s3cr3t-word"}}})");
    EXPECT_TRUE(open().resolve()) << type;
  }
  // Releases of curl differ in the case of escapes.
  EXPECT_THAT(server.log(), testing::ContainsRegex("scope=repository%3[aA]os%2[fF]base%3[aA]pull&"));
}

TEST_F(SourceTest, denied_names_everything_but_the_secret) {
  server.faults(R"({"auth":{"type":"basic","users":{"alice":"other"}}})");
  auto error = open().resolve().error();
  EXPECT_EQ(error.kind, Kind::Denied);
  EXPECT_THAT(error.message, HasSubstr("no credentials"));
  credentials();
  error = open().resolve().error();
  EXPECT_EQ(error.kind, Kind::Denied);
  EXPECT_THAT(error.message, HasSubstr("etc/rasupd/auth.json"));
  EXPECT_THAT(error.message, HasSubstr("os/base"));
  EXPECT_THAT(error.message, Not(HasSubstr("s3cr3t")));
  EXPECT_THAT(error.message, Not(HasSubstr("\x1b")));
}

TEST_F(SourceTest, nothing_secret_goes_to_another_port) {
  credentials();
  fakes::HostileRegistry other(content());
  server.faults(
      R"({"auth":{"type":"basic","users":{"alice":"s3cr3t-word"}},"faults":[{"path":"*/blobs/*","do":"redirect","to":"http://127.0.0.1:)" +
      other.port + R"({path}"}]})");
  auto source = open();
  ASSERT_TRUE(source.resolve());
  EXPECT_TRUE(source.small_blob(server.blob, 1 << 20));
  EXPECT_THAT(other.log(), HasSubstr("/blobs/"));
  EXPECT_THAT(other.log(), Not(HasSubstr("authorization")));
  server.faults(R"({"auth":{"type":"bearer","realm":"http://127.0.0.1:)" + other.port + R"(/token"}})");
  EXPECT_EQ(open().resolve().error().kind, Kind::Denied);
  EXPECT_THAT(other.log(), Not(HasSubstr("/token")));
}

TEST_F(SourceTest, a_layout_and_its_tar) {
  const std::string layout = server.root + "/layout";
  ASSERT_EQ(std::system(("tar -C " + layout + " -cf " + server.root + "/image.tar . && gzip -k " +
                         server.root + "/image.tar")
                            .c_str()),
            0);
  for (const std::string& name : {"oci:" + layout + ":1", "oci-archive:" + server.root + "/image.tar"}) {
    auto source = *Source::open(fake.world, *Reference::parse(name), settings);
    EXPECT_EQ(source.resolve()->digest, server.manifest.digest);
    EXPECT_EQ(*source.small_blob(server.blob, 1 << 20), content());
    EXPECT_FALSE(*source.tagged("2"));
    Descriptor lie = server.blob;
    lie.size += 1;
    EXPECT_EQ(source.small_blob(lie, 1 << 20).error().kind, Kind::Untrusted);
  }
  const auto packed =
      Source::open(fake.world, *Reference::parse("oci-archive:" + server.root + "/image.tar.gz"), settings);
  EXPECT_THAT(packed.error().message, HasSubstr("compressed"));
  const std::string blob = layout + "/blobs/sha256/" + server.blob.digest.hex();
  std::filesystem::rename(blob, server.root + "/moved");
  std::filesystem::create_symlink(server.root + "/moved", blob);
  auto source = *Source::open(fake.world, *Reference::parse("oci:" + layout), settings);
  EXPECT_EQ(source.small_blob(server.blob, 1 << 20).error().kind, Kind::Untrusted);
}

}  // namespace
}  // namespace rasupd
