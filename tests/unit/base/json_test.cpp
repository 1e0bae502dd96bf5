#include "base/json.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/fixture.hpp"

namespace rasupd {
namespace {

using test::FailsWith;
using test::Succeeds;

Result<Json> parse(std::string_view text) {
  return parse_json(text, "doc", Kind::Untrusted, 1000);
}

TEST(Json, ReadsAllKindsOfValues) {
  const auto json = parse(" {\"a\":[1,-2,1.5,true,null,\"x\"],\"b\":{\"c\":{}},\"d\":[[],[{}]]} \n");
  ASSERT_THAT(json, Succeeds());
  EXPECT_EQ(json->dump(), R"({"a":[1,-2,1.5,true,null,"x"],"b":{"c":{}},"d":[[],[{}]]})");
}

TEST(Json, RefusesWhatOthersReadTwoWays) {
  const std::pair<std::string, const char*> cases[] = {
      {R"({"a":1,"a":2})", "duplicate key \"a\""},
      {R"({"x":{"a":1,"b":2,"a":3}})", "duplicate key"},
      {R"([{"a":1},{"\u0061":1,"a":1}])", "duplicate key"},
      {R"({"a":1}{})", "not valid JSON"},
      {R"({"a":1} x)", "not valid JSON"},
      {std::string("{}\0", 3), "NUL"},
      {std::string("{}\0{\"a\":1}", 10), "NUL"},
      {"{\"a\":\"\xff\"}", "UTF-8"},
      {"{\"a\":\"\xc0\xaf\"}", "UTF-8"},
      {R"({"a":1,})", "not valid JSON"},
      {"// c\n{}", "not valid JSON"},
      {"", "not valid JSON"},
      {R"({"a":NaN})", "not valid JSON"},
      {R"({"a":01})", "not valid JSON"},
      {"{\"a\":\"\n\"}", "not valid JSON"},
  };
  for (const auto& [text, why] : cases) EXPECT_THAT(parse(text), FailsWith(Kind::Untrusted, why)) << text;
}

TEST(Json, SizeAndDepthAreBounded) {
  EXPECT_THAT(parse(std::string(1000, ' ') + "1"), FailsWith(Kind::Untrusted, "1001 bytes"));
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_THAT(parse(nested(kMaxJsonDepth)), Succeeds());
  EXPECT_THAT(parse(nested(kMaxJsonDepth + 1)), FailsWith(Kind::Untrusted, "deeply"));
  EXPECT_THAT(parse_json("[", "doc", Kind::Config, 10), FailsWith(Kind::Config, "doc: "));
}

TEST(Json, AccessorsNameWhatIsWrong) {
  const Json json = *parse(R"({"s":"x","n":1,"neg":-1,"f":1.0,"null":null,"m":{"a":"b"},"bad":{"a":1}})");
  EXPECT_EQ(*json_string(json, "s", "w", Kind::Config), "x");
  EXPECT_THAT(json_string(json, "n", "w", Kind::Config), FailsWith(Kind::Config, "w: \"n\" is not a string"));
  EXPECT_THAT(json_string(json, "S", "w", Kind::Config), FailsWith(Kind::Config, "w: \"S\" is missing"));
  EXPECT_THAT(json_string(Json::array(), "s", "w", Kind::Config), FailsWith(Kind::Config, "missing"));
  EXPECT_EQ(*json_unsigned(json, "n", "w", Kind::Config), 1u);
  for (const char* key : {"neg", "f", "s", "null"}) {
    EXPECT_THAT(json_unsigned(json, key, "w", Kind::Config), FailsWith(Kind::Config, "whole number")) << key;
  }
  EXPECT_EQ(*json_optional_string(json, "none", "w", Kind::Config), std::nullopt);
  EXPECT_THAT(json_optional_string(json, "null", "w", Kind::Config), FailsWith(Kind::Config, "not a string"));
  EXPECT_EQ(json_string_map(json, "m", "w", Kind::Config)->at("a"), "b");
  EXPECT_TRUE(json_string_map(json, "null", "w", Kind::Config)->empty());
  EXPECT_TRUE(json_string_map(json, "none", "w", Kind::Config)->empty());
  EXPECT_THAT(json_string_map(json, "bad", "w", Kind::Config), FailsWith(Kind::Config, "bad.a"));
  EXPECT_THAT(json_string_map(json, "s", "w", Kind::Config), FailsWith(Kind::Config, "not an object"));
}

}  // namespace
}  // namespace rasupd
