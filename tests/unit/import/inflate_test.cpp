// R109: every legal encoding gives its bytes, everything else is refused.
#include "fence/inflate.hpp"

#include "kit.hpp"

namespace rasupd::kit {
namespace {

class InflateTest : public ImportTest {
 protected:
  std::string packed(const std::string& command, const std::string& bytes) {
    spill(directory + "/in", bytes);
    return shell(command + " < " + directory + "/in");
  }
  std::string gzip(const std::string& bytes) { return packed("gzip -n", bytes); }
  std::string zstd(const std::string& bytes) { return packed("zstd -c", bytes); }
  static std::string text(std::size_t lines) {
    std::string out;
    for (std::size_t i = 0; i < lines; ++i) out += "line " + std::to_string(i * 7919 % 10007) + "\n";
    return out;
  }
  static void expect_refused(const Result<std::string>& got, const std::string& word) {
    ASSERT_FALSE(got) << word;
    EXPECT_EQ(got.error().kind, Kind::Untrusted);
    EXPECT_NE(got.error().message.find(word), std::string::npos) << got.error().message;
  }
  /// Every chunking of the input gives the same: members and frames end anywhere in a read.
  static void expect_bytes(Reader (*inflate)(Reader), const std::string& in, const std::string& out) {
    for (const std::size_t chunk : {1u, 7u, 4096u, 1u << 20}) {
      const auto got = read_all(inflate(reader_of(in, chunk)));
      ASSERT_TRUE(got) << got.error().message << " in chunks of " << chunk;
      EXPECT_TRUE(*got == out) << "in chunks of " << chunk;
    }
  }
};

TEST_F(InflateTest, GzipOneMemberAndMany) {
  const std::string a = text(20000), b = text(3), c;
  expect_bytes(inflate_gzip, gzip(a), a);
  expect_bytes(inflate_gzip, gzip(a) + gzip(c) + gzip(b) + gzip(a), a + c + b + a);
  std::string many, sum;
  for (int i = 0; i < 300; ++i) {
    many += gzip(std::string(static_cast<std::size_t>(i), 'x'));
    sum += std::string(static_cast<std::size_t>(i), 'x');
  }
  expect_bytes(inflate_gzip, many, sum);
}

TEST_F(InflateTest, GzipHeaderFields) {
  spill(directory + "/named", text(10));
  const std::string named = shell("cd " + directory + " && gzip -c named");
  ASSERT_EQ(named[3] & 8, 8);
  expect_bytes(inflate_gzip, named, text(10));
}

TEST_F(InflateTest, GzipRefusesWhatIsNotWhole) {
  const std::string good = gzip(text(5000));
  const auto inflate = [](const std::string& in) { return read_all(inflate_gzip(reader_of(in))); };
  for (const std::size_t cut :
       {1ul, 5ul, 30ul, good.size() / 2, good.size() - 9, good.size() - 8, good.size() - 1}) {
    expect_refused(inflate(good.substr(0, cut)), "truncated");
  }
  expect_refused(inflate(""), "empty");
  expect_refused(inflate(good + "garbage"), "garbage");
  expect_refused(inflate(good + std::string(512, '\0')), "garbage");
  expect_refused(inflate(good + "\x1f"), "truncated");
  expect_refused(inflate("plain text"), "not a gzip");
  std::string bad = good;
  bad[bad.size() - 8] ^= 1;
  expect_refused(inflate(bad), "checksum");
  bad = good;
  bad[bad.size() - 1] ^= 1;
  expect_refused(inflate(bad), "length");
  bad = good;
  bad[3] = '\xE0';
  expect_refused(inflate(bad), "reserved");
}

TEST_F(InflateTest, ZstdFramesAndSkippableFrames) {
  const std::string a = text(20000), b = text(3);
  const std::string skippable = std::string("\x50\x2A\x4D\x18\x05\0\0\0hello", 13);
  expect_bytes(inflate_zstd, zstd(a), a);
  expect_bytes(inflate_zstd, zstd(a) + zstd(b), a + b);
  expect_bytes(inflate_zstd, skippable + zstd(a) + skippable + zstd(b) + skippable + skippable, a + b);
}

TEST_F(InflateTest, ZstdRefusesWhatIsNotWhole) {
  const std::string good = zstd(text(5000));
  const auto inflate = [](const std::string& in) { return read_all(inflate_zstd(reader_of(in))); };
  for (const std::size_t cut : {1ul, 5ul, good.size() / 2, good.size() - 1}) {
    expect_refused(inflate(good.substr(0, cut)), "truncated");
  }
  expect_refused(inflate(""), "empty");
  expect_refused(inflate(good + "garbage"), "zstd");
  std::string bad = good;
  bad[bad.size() - 1] ^= 1;
  expect_refused(inflate(bad), "checksum");
}

TEST_F(InflateTest, EveryEncodingImports) {
  const std::string plain = tar({file("usr/x", text(30000))});
  const std::size_t half = plain.size() / 2;
  const std::string gz = "application/vnd.oci.image.layer.v1.tar+gzip",
                    zst = "application/vnd.oci.image.layer.v1.tar+zstd";
  const std::vector<LayerBytes> encodings = {
      plain_layer(plain),
      {gzip(plain), plain, gz},
      {gzip(plain.substr(0, half)) + gzip(plain.substr(half)), plain, gz},
      {zstd(plain), plain, zst},
      {zstd(plain.substr(0, half)) + zstd(plain.substr(half)), plain, zst}};
  for (const LayerBytes& layer : encodings) {
    shell("rm -rf " + repo_path + " && ostree init --mode=bare --repo=" + repo_path);
    const auto done = import(image_of({plain_layer(tar(bootable())), layer}));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(cat(done->commit, "/usr/x") == text(30000));
  }
}

TEST_F(InflateTest, AMediaTypeThatLiesIsRefused) {
  const std::string plain = tar({file("usr/x")});
  const std::string gz = "application/vnd.oci.image.layer.v1.tar+gzip",
                    zst = "application/vnd.oci.image.layer.v1.tar+zstd";
  for (const LayerBytes& lie :
       {LayerBytes{plain, plain, gz}, LayerBytes{gzip(plain), plain}, LayerBytes{gzip(plain), plain, zst}}) {
    const auto done = import(image_of({plain_layer(tar(bootable())), lie}));
    ASSERT_FALSE(done) << lie.media_type;
    EXPECT_EQ(done.error().kind, Kind::Untrusted) << done.error().message;
  }
}

}  // namespace
}  // namespace rasupd::kit
