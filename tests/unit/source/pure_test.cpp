// The parts that decide without a server: challenges, waits, ranges, credentials, who may see a password.

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "source/auth_file.hpp"
#include "source/blob_stream.hpp"
#include "source/challenge.hpp"
#include "source/registries.hpp"
#include "source/retry.hpp"

namespace rasupd {
namespace {

using std::chrono::seconds;

TEST(Challenge, several_in_one_header) {
  const auto all =
      parse_challenges(R"(Negotiate, BASIC realm="a, \"b\"", Bearer Realm="https://h/t",scope=x)");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].scheme, "negotiate");
  EXPECT_EQ(all[1].params.at("realm"), "a, \"b\"");
  EXPECT_EQ(all[2].scheme, "bearer");
  EXPECT_EQ(all[2].params.at("realm"), "https://h/t");
  EXPECT_TRUE(parse_challenges(R"(Bearer realm="open)").empty());
}

TEST(Retry, delays_and_dates) {
  EXPECT_EQ(retry_delay(1, 0, {}).count(), 500);
  EXPECT_EQ(retry_delay(3, 0, {}).count(), 2000);
  EXPECT_LE(retry_delay(99, 0.99, {}), kMaxRetryDelay);
  EXPECT_EQ(retry_delay(1, 0, seconds(3600)), kMaxRetryDelay);
  const std::chrono::system_clock::time_point now(seconds(784111770));
  EXPECT_EQ(parse_retry_after("7", now), seconds(7));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), seconds(7));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1993 08:49:37 GMT", now), seconds(0));
  for (const char* bad : {"", "-1", "soon", "Sun, 36 Nov 1994 08:49:37 GMT"})
    EXPECT_FALSE(parse_retry_after(bad, now));
  EXPECT_TRUE(is_retryable_status(503));
  EXPECT_FALSE(is_retryable_status(404));
}

TEST(ContentRange, exact_or_nothing) {
  ASSERT_TRUE(parse_content_range("bytes 5-9/10"));
  for (const char* bad : {"", "bytes */10", "bytes 5-9/*", "bytes 9-5/10", "bytes 5-10/10", "bytes 5-9/10x"})
    EXPECT_FALSE(parse_content_range(bad)) << bad;
}

TEST(AuthFile, most_specific_entry_then_host_then_legacy) {
  const auto entry = [](const char* text) { return R"({"auth":")" + base64_encode(text) + R"("})"; };
  const std::string text = R"({"auths":{"h/a/b":)" + entry("one:1") + R"(,"h/a":)" + entry("two:2:2") +
                           R"(,"https://index.docker.io/v1/":)" + entry("hub:3") +
                           R"(,"bad":{"auth":"!"}},)" + R"("credHelpers":{"ecr":"ecr-login","evil":"../x"}})";
  std::string helper;
  const auto find = [&](const char* host, const char* repo) {
    return parse_auth_file(text, "f", host, repo, &helper);
  };
  EXPECT_EQ((*find("h", "a/b"))->username, "one");
  EXPECT_EQ((*find("h", "a/c"))->password, "2:2");
  EXPECT_FALSE(*find("h", "ab"));
  EXPECT_EQ((*find("docker.io", "library/x"))->username, "hub");
  EXPECT_EQ(find("bad", "x").error().kind, Kind::Config);
  EXPECT_EQ(find("evil", "x").error().kind, Kind::Config);
  EXPECT_FALSE(*find("ecr", "x"));
  EXPECT_EQ(helper, "ecr-login");
  EXPECT_EQ(parse_auth_file(R"({"auths":{},"auths":{}})", "f", "h", "r", &helper).error().kind, Kind::Config);
}

TEST(Registries, longest_prefix_rewrites_and_blocks) {
  Registries all;
  ASSERT_TRUE(all.add(
      "[[registry]]\nprefix='h/a'\nlocation='m:5/x'\ninsecure=true\n[[registry]]\nlocation='h'\nblocked=true",
      "f"));
  const auto places = all.endpoints(*Reference::parse("h.io/a:1"));
  EXPECT_EQ(places->back().host, "h.io");
  EXPECT_FALSE(places->back().insecure);
  Reference reference = *Reference::parse("h.io/a/b:1");
  reference.host = "h";
  const auto moved = all.endpoints(reference);
  EXPECT_EQ(moved->back().host, "m:5");
  EXPECT_EQ(moved->back().repository, "x/b");
  EXPECT_TRUE(moved->back().insecure);
  reference.repository = "ab";
  EXPECT_EQ(all.endpoints(reference).error().kind, Kind::Config);
  EXPECT_EQ(all.add("[[registry]]\nlocation=1", "f").error().kind, Kind::Config);
}

}  // namespace
}  // namespace rasupd
