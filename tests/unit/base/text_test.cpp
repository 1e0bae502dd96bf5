#include "base/text.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "base/image_name.hpp"
#include "base/result.hpp"

namespace rasupd {
namespace {

using testing::ElementsAre;

RC_GTEST_PROP(Text, HexAndBase64AreUndone, (const std::string& bytes)) {
  RC_ASSERT(from_hex(to_hex(as_bytes(bytes))) == bytes);
  RC_ASSERT(base64_decode(base64_encode(bytes)) == bytes);
}

// One spelling per value: whatever decodes encodes to the same text.
RC_GTEST_PROP(Text, Base64HasOneSpelling, ()) {
  const auto text =
      *rc::gen::container<std::string>(rc::gen::element('A', 'B', 'Q', 'g', 'w', '/', '+', '9', '='));
  const auto bytes = base64_decode(text);
  if (bytes) RC_ASSERT(base64_encode(*bytes) == text);
}

TEST(Text, Base64KnownAnswers) {  // RFC 4648 section 10
  EXPECT_EQ(base64_encode("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64_encode("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64_encode("foob"), "Zm9vYg==");
  EXPECT_EQ(base64_decode(""), "");
  for (const char* bad : {"Zm9", "Zm9vYg=", "Zm9vYh==", "Zm9vYmF=", "Zm9v\n", "Zm9v Zm9", "Zm=v",
                          "====", "Zg==Zg==", "Zm9-", "Zm9_"}) {
    EXPECT_EQ(base64_decode(bad), std::nullopt) << bad;
  }
}

TEST(Text, HexIsLowerCaseAndEven) {
  EXPECT_EQ(from_hex("0aff"), std::string("\x0a\xff"));
  for (const char* bad : {"0", "0A", "0g", "0x", " 0"}) EXPECT_EQ(from_hex(bad), std::nullopt) << bad;
}

TEST(Text, Utf8) {
  for (const char* good : {"", "a", "ä", "€", "😀", "\xf4\x8f\xbf\xbf"}) EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf8\x88\x80\x80\x80"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

RC_GTEST_PROP(Text, PrintableNeverHoldsControls, (const std::string& text)) {
  const std::string shown = printable(text);
  RC_ASSERT(is_utf8(shown));
  for (const char c : shown) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

TEST(Text, PrintableKeepsTextAndCuts) {
  EXPECT_EQ(printable("Grüße 😀"), "Grüße 😀");
  EXPECT_EQ(printable("a\x1b[2Jb\nc\x7f"), "a?[2Jb?c?");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "?31m");
  EXPECT_EQ(printable("abcdef", 3), "abc…");
  EXPECT_EQ(printable("ää", 3), "ä…");
}

TEST(Text, SplitJoinTrim) {
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(trim(" \t a b \n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, Sizes) {
  EXPECT_EQ(human_size(999), "999 bytes");
  EXPECT_EQ(human_size(1000), "1.0 kB");
  EXPECT_EQ(human_size(1'549'999), "1.5 MB");
  EXPECT_EQ(human_size(999'960), "1.0 MB");
}

TEST(Text, Times) {
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(parse_rfc3339("2026-11-29T12:00:00Z"), 1795953600);
  EXPECT_EQ(parse_rfc3339("2026-11-29T12:00:00.123456789Z"), 1795953600);
  EXPECT_EQ(parse_rfc3339("2026-11-29T14:00:00+02:00"), 1795953600);
  EXPECT_EQ(parse_rfc3339("2026-11-29T10:30:00-01:30"), 1795953600);
  for (const char* bad :
       {"", "2026-11-29", "2026-11-29T12:00:00", "2026-13-01T00:00:00Z", "2026-11-29T12:00:00.Z",
        "2026-11-29T12:00:00Zx", "2026-11-29T24:00:00Z", "2026-11-29T12:00:00+2:00"}) {
    EXPECT_EQ(parse_rfc3339(bad), std::nullopt) << bad;
  }
}

TEST(Result, KindsHaveNamesAndContext) {
  EXPECT_EQ(kind_name(Kind::Untrusted), "Untrusted");
  EXPECT_EQ(kind_name(Kind::NoSpace), "NoSpace");
  EXPECT_EQ(kind_of_errno(ENOSPC), Kind::NoSpace);
  EXPECT_EQ(kind_of_errno(EDQUOT), Kind::NoSpace);
  EXPECT_EQ(kind_of_errno(EIO), Kind::Failed);
  const Result<int> failed = fail(Kind::Held, "inner", "do this");
  const auto outer = Result<int>(failed).within("outer");
  EXPECT_EQ(outer.error().message, "outer: inner");
  EXPECT_EQ(outer.error().hint, "do this");
  EXPECT_EQ(outer.error().kind, Kind::Held);
  EXPECT_EQ(*Result<int>(3).within("outer"), 3);
}

TEST(Result, TryHandsTheErrorOn) {
  const auto twice = [](Result<int> in) -> Result<int> { return 2 * TRY(std::move(in)); };
  EXPECT_EQ(*twice(4), 8);
  EXPECT_EQ(twice(fail(Kind::Boot, "x")).error().kind, Kind::Boot);
}

TEST(ImageName, GrammarOfItsParts) {
  for (const char* good : {"h", "h.example", "H-1.example:5000", "[::1]", "[::1]:5000", "127.0.0.1:5055"}) {
    EXPECT_TRUE(is_host(good)) << good;
  }
  for (const char* bad :
       {"", "-h", "h-", "h..x", "h:", "h:x", "h:123456", "[]", "[::1", "[::g]", "[::1]x", "h_x", "h/x"}) {
    EXPECT_FALSE(is_host(bad)) << bad;
  }
  for (const char* good : {"a", "a/b", "a.b", "a_b", "a__b", "a---b", "0"})
    EXPECT_TRUE(is_repository(good)) << good;
  for (const char* bad : {"", "A", "a/", "/a", "a//b", "a..b", "a___b", "a.-b", "-a", "a-", "a b", "../a"}) {
    EXPECT_FALSE(is_repository(bad)) << bad;
  }
  EXPECT_TRUE(is_tag("_1.0-x"));
  EXPECT_TRUE(is_tag(std::string(128, 'a')));
  for (const std::string& bad :
       {std::string(), std::string("-a"), std::string(".a"), std::string("a/b"), std::string(129, 'a')}) {
    EXPECT_FALSE(is_tag(bad)) << bad;
  }
}

}  // namespace
}  // namespace rasupd
