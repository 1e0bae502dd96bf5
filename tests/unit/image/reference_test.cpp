#include "image/reference.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "support/fixture.hpp"

namespace rasupd {
namespace {

using test::FailsWith;
using test::Succeeds;
using testing::HasSubstr;

const std::string kHex(64, 'a');
const std::string kDigest = "sha256:" + kHex;

Reference parsed(const std::string& text) {
  auto reference = Reference::parse(text);
  EXPECT_THAT(reference, Succeeds()) << text;
  return reference ? *reference : Reference{};
}

TEST(Digest, OneAlgorithmOneSpelling) {
  EXPECT_EQ(Digest::parse(kDigest)->str(), kDigest);
  EXPECT_EQ(Digest::parse(kDigest)->hex(), kHex);
  EXPECT_TRUE(Digest().empty());
  const std::string bad[] = {"",
                             kHex,
                             "sha256:",
                             "sha256:" + std::string(63, 'a'),
                             kDigest + "a",
                             "sha256:" + std::string(64, 'A'),
                             "SHA256:" + kHex,
                             "sha512:" + std::string(128, 'a'),
                             "sha256:../" + std::string(61, 'a'),
                             "sha256:" + std::string(64, 'g'),
                             kDigest + "\n",
                             " " + kDigest};
  for (const auto& text : bad) {
    EXPECT_THAT(Digest::parse(text), FailsWith(Kind::Untrusted, "not a digest")) << text;
  }
  EXPECT_THAT(Digest::parse("x", Kind::Usage), FailsWith(Kind::Usage, ""));
}

RC_GTEST_PROP(Digest, RoundTrip, ()) {
  const auto hex = *rc::gen::container<std::string>(64, rc::gen::elementOf(std::string("0123456789abcdef")));
  RC_ASSERT(Digest::of_hex(hex) == Digest::parse("sha256:" + hex).value());
}

TEST(Reference, RegistryForms) {
  const Reference r = parsed("h.example:5000/a/b:1.0@" + kDigest);
  EXPECT_EQ(r.host, "h.example:5000");
  EXPECT_EQ(r.repository, "a/b");
  EXPECT_EQ(r.tag, "1.0");
  EXPECT_EQ(r.digest->str(), kDigest);
  EXPECT_EQ(r.name(), "h.example:5000/a/b:1.0@" + kDigest);
  EXPECT_EQ(r.ref_key(), "docker://" + r.name());
  EXPECT_EQ(r.origin(), "ostree-image-signed:docker://" + r.name());
  EXPECT_EQ(parsed("docker://h.example/a").tag, "latest");
  EXPECT_EQ(parsed("h.example/a@" + kDigest).tag, std::nullopt);
  EXPECT_EQ(parsed("registry:h.example/a:1"), parsed("h.example/a:1"));
  EXPECT_EQ(parsed("registry:5000/a:1").host, "registry:5000");
  EXPECT_EQ(parsed("[::1]:5000/a:1").host, "[::1]:5000");
  EXPECT_EQ(parsed("localhost/a:1").host, "localhost");
}

TEST(Reference, DockerHubNamesExpand) {
  EXPECT_EQ(parsed("docker.io/debian:12").name(), "docker.io/library/debian:12");
  EXPECT_EQ(parsed("index.docker.io/debian:12").name(), "docker.io/library/debian:12");
  EXPECT_EQ(parsed("docker.io/a/b:1").name(), "docker.io/a/b:1");
}

TEST(Reference, LayoutForms) {
  const Reference r = parsed("oci:/a:b/c.d:v1");
  EXPECT_EQ(r.transport, Transport::oci);
  EXPECT_EQ(r.path, "/a:b/c.d");
  EXPECT_EQ(r.tag, "v1");
  EXPECT_EQ(r.name(), "/a:b/c.d:v1");
  EXPECT_EQ(r.origin(), "ostree-image-signed:oci:/a:b/c.d:v1");
  EXPECT_EQ(parsed("oci:/a:b/c").tag, std::nullopt);
  EXPECT_EQ(parsed("oci:rel").path, "rel");
  const Reference digest = parsed("oci-archive:/a/b.tar@" + kDigest);
  EXPECT_EQ(digest.transport, Transport::oci_archive);
  EXPECT_EQ(digest.path, "/a/b.tar");
  EXPECT_EQ(digest.digest->str(), kDigest);
}

TEST(Reference, ShortNamesAreRefusedWithAHint) {
  for (const char* text : {"fedora", "fedora:40", "ubi9/ubi:1", "a/b/c"}) {
    const auto refused = Reference::parse(text);
    ASSERT_THAT(refused, FailsWith(Kind::Usage, "which registry")) << text;
    EXPECT_THAT(refused.error().hint, HasSubstr(std::string("registry.example.com/") + text));
  }
}

TEST(Reference, Refused) {
  const std::string bad[] = {"",
                             "h.example/",
                             "h.example/A",
                             "h.example/a:",
                             "h.example/a:b c",
                             "h.example/a:-x",
                             "h.example/a@sha256:1",
                             "h.example/a@",
                             "h.example/a@sha512:" + std::string(128, 'a'),
                             "h.example/../a",
                             "h.example/a//b",
                             "h_x.example/a",
                             "h.example:port/a",
                             "h.example/" + std::string(250, 'a'),
                             "https://h.example/a",
                             "docker:h.example/a",
                             "containers-storage:h.example/a",
                             "dir:/a",
                             "oci:",
                             "oci:/a:",
                             "oci:/a:b c",
                             "oci:/a@sha256:12",
                             "oci:/a\nb:1",
                             "oci:/\xff"};
  for (const auto& text : bad) EXPECT_THAT(Reference::parse(text), FailsWith(Kind::Usage, "")) << text;
}

TEST(Reference, TransportAndName) {
  EXPECT_EQ(*Reference::parse("registry", "h.example/a:1"), parsed("h.example/a:1"));
  EXPECT_EQ(*Reference::parse("oci", "/a:1"), parsed("oci:/a:1"));
  EXPECT_EQ(*Reference::parse("oci-archive", "/a:1"), parsed("oci-archive:/a:1"));
  EXPECT_THAT(Reference::parse("ostree", "x"), FailsWith(Kind::Usage, "no transport"));
}

TEST(Reference, OriginsOfOstreeExt) {
  const std::pair<const char*, const char*> cases[] = {
      {"ostree-image-signed:docker://h.example/a:1", "h.example/a:1"},
      {"ostree-image-signed:registry:h.example/a:1", "h.example/a:1"},
      {"ostree-image-signed:oci:/p:1", "oci:/p:1"},
      {"ostree-unverified-image:docker://h.example/a:1", "h.example/a:1"},
      {"ostree-unverified-image:oci-archive:/p:1", "oci-archive:/p:1"},
      {"ostree-unverified-registry:h.example/a:1", "h.example/a:1"},
      {"ostree-remote-image:fedora:docker://h.example/a:1", "h.example/a:1"},
      {"ostree-remote-image:fedora:registry:h.example/a:1", "h.example/a:1"},
      {"ostree-remote-registry:fedora:h.example/a:1", "h.example/a:1"},
      {"docker://h.example/a:1", "h.example/a:1"},
  };
  for (const auto& [origin, text] : cases) {
    const auto reference = Reference::parse_origin(origin);
    ASSERT_THAT(reference, Succeeds()) << origin;
    EXPECT_EQ(reference->str(), text) << origin;
  }
  for (const char* bad :
       {"", "ostree-image-signed:", "ostree-remote-image:docker", "ostree-unverified-registry:fedora"}) {
    EXPECT_THAT(Reference::parse_origin(bad), FailsWith(Kind::Config, "container-image-reference")) << bad;
  }
}

TEST(Reference, WithDigestIsByDigestAlone) {
  const Reference r = parsed("h.example/a:1").with_digest(*Digest::parse(kDigest));
  EXPECT_EQ(r.name(), "h.example/a@" + kDigest);
}

/// References of all kinds, among them hosts that are spelled like transports.
rc::Gen<Reference> references() {
  return rc::gen::exec([] {
    Reference r;
    r.transport = *rc::gen::element(Transport::registry, Transport::oci, Transport::oci_archive);
    if (r.transport == Transport::registry) {
      r.host = *rc::gen::element<std::string>("h.example", "h.example:5000", "localhost", "[::1]:80",
                                              "oci:5000", "registry:5000", "oci-archive:1", "docker:2375",
                                              "docker.io", "dir:80");
      r.repository = *rc::gen::element<std::string>("a/b", "library/a", "x-y/z__q/1.2");
    } else {
      const auto chars = rc::gen::elementOf(std::string("ab:/@.-_ ~"));
      r.path = "/" + *rc::gen::container<std::string>(chars) + "/x";
    }
    if (*rc::gen::arbitrary<bool>()) r.tag = *rc::gen::element<std::string>("1", "latest", "_a.b-c");
    if (*rc::gen::arbitrary<bool>()) r.digest = Digest::of_hex(kHex);
    if (r.transport == Transport::registry && !r.tag && !r.digest) r.tag = "latest";
    return r;
  });
}

RC_GTEST_PROP(Reference, RoundTrips, ()) {
  const Reference r = *references();
  RC_LOG() << r.str();
  RC_ASSERT(Reference::parse(r.str()).value() == r);
  RC_ASSERT(Reference::parse(transport_name(r.transport), r.name()).value() == r);
  RC_ASSERT(Reference::parse_origin(r.origin()).value() == r);
}

}  // namespace

void showValue(const Reference& r, std::ostream& out) {
  out << r.ref_key();
}

}  // namespace rasupd
