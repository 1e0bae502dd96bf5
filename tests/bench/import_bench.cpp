// rasupd_import_bench LAYOUT REPO [THREADS]: the first image of an OCI layout into a bare repository, without
// network and policy, to tell where an import spends its time. import_bench.py measures the whole program.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "fakes/fakes.hpp"
#include "fence/hash.hpp"
#include "import/pull.hpp"

namespace rasupd {
namespace {

constexpr std::size_t kMaxDocument = 4u << 20;

std::string blob_path(const std::string& layout, const Digest& digest) { return layout + "/blobs/sha256/" + digest.hex(); }

Result<std::string> document(const std::string& path) {
  auto text = TRY(read_file(path, kMaxDocument));
  if (!text) return fail(Kind::Failed, path + " is missing");
  return std::move(*text);
}

/// As Source's reader does it: the digest is checked where the end would be.
Result<Reader> open_blob(const std::string& layout, const Descriptor& layer) {
  const auto fd = std::make_shared<Fd>(::open(blob_path(layout, layer.digest).c_str(), O_RDONLY | O_CLOEXEC));
  if (!*fd) return fail(Kind::Failed, "cannot open blob " + layer.digest.str());
  const auto hash = std::make_shared<Sha256>();
  return Reader([fd, hash, layer](std::span<std::byte> out) -> Result<std::size_t> {
    const ssize_t n = ::read(fd->get(), out.data(), out.size());
    if (n < 0) return fail_errno(errno, "reading a blob");
    hash->update(out.first(static_cast<std::size_t>(n)));
    if (n == 0 && hash->finish_hex() != layer.digest.hex()) return fail(Kind::Untrusted, "wrong digest");
    return static_cast<std::size_t>(n);
  });
}

Result<void> run(const std::string& layout, const std::string& repo_path, unsigned threads) {
  const std::string index_text = TRY(document(layout + "/index.json"));
  const Index index = TRY(parse_index(index_text, kOciIndex));
  ImageDocuments image;
  image.reference = TRY(Reference::parse("oci:" + layout + ":bench"));
  image.manifest_digest = index.manifests.at(0).digest;
  image.manifest_bytes = TRY(document(blob_path(layout, image.manifest_digest)));
  image.manifest = TRY(parse_manifest(image.manifest_bytes, ""));
  image.config_bytes = TRY(document(blob_path(layout, image.manifest.config.digest)));
  image.config = TRY(parse_config(image.config_bytes));
  Repo repo = TRY(Repo::open(repo_path));
  const ImportPlan plan = TRY(plan_import(repo, image.manifest, image.config));
  const Fetch fetch = [&](const Descriptor& layer) { return open_blob(layout, layer); };
  fakes::FakeWorld fake;
  const Imported done = TRY(import_with(fake.world, repo, fetch, image, plan, ImportOptions{threads}));
  std::printf("%s\n", done.commit.c_str());
  return {};
}

}  // namespace
}  // namespace rasupd

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const auto done = rasupd::run(argv[1], argv[2], argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 2u);
  if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
