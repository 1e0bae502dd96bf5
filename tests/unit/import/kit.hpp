#pragma once
// What the import tests share: tar layers written entry by entry, a real bare repository in a temporary
// directory, and an import of such layers into it.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "base/text.hpp"
#include "fakes/fakes.hpp"
#include "fence/hash.hpp"
#include "import/layer_import.hpp"
#include "import/pull.hpp"

namespace rasupd::kit {

struct Entry {
  std::string path;
  char type = '0';  ///< ustar typeflag
  std::string body{}, link{};
  unsigned mode = 0644, uid = 0, gid = 0;
  std::vector<std::pair<std::string, std::string>> pax{};
  unsigned device_major = 0, device_minor = 0;
};
inline Entry file(std::string path, std::string body = "x", unsigned mode = 0644) {
  return {std::move(path), '0', std::move(body), "", mode};
}
inline Entry dir(std::string path, unsigned mode = 0755, unsigned uid = 0, unsigned gid = 0) {
  return {std::move(path), '5', "", "", mode, uid, gid};
}
inline Entry symlink(std::string path, std::string target) {
  return {std::move(path), '2', "", std::move(target), 0777};
}
inline Entry hardlink(std::string path, std::string target) {
  return {std::move(path), '1', "", std::move(target)};
}
inline Entry whiteout(std::string directory, std::string name) {
  return file(directory + "/.wh." + name, "");
}

inline void put(std::string& block, std::size_t at, std::string_view text) {
  block.replace(at, text.size(), text);
}
inline std::string octal(unsigned long long value, int width) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", width, value);
  return text;
}
inline std::string padded(std::string body) {
  body.resize((body.size() + 511) / 512 * 512, '\0');
  return body;
}
inline std::string header(const Entry& e, char type, std::size_t size, std::string_view path) {
  std::string block(512, '\0');
  put(block, 0, path.substr(0, 100));
  put(block, 100, octal(e.mode, 7));
  put(block, 108, octal(e.uid, 7));
  put(block, 116, octal(e.gid, 7));
  put(block, 124, octal(size, 11));
  put(block, 136, octal(1700000000, 11));
  put(block, 148, "        ");
  block[156] = type;
  put(block, 157, std::string_view(e.link).substr(0, 100));
  put(block, 257, std::string_view("ustar\00000", 8));
  put(block, 329, octal(e.device_major, 7));
  put(block, 337, octal(e.device_minor, 7));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(block, 148, octal(sum, 6) + std::string(1, '\0') + " ");
  return block;
}
inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  std::size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}
inline std::string tar(const std::vector<Entry>& entries) {
  std::string out;
  for (const Entry& e : entries) {
    std::string records;
    if (e.path.size() > 100) records += pax_record("path", e.path);
    for (const auto& [key, value] : e.pax) records += pax_record(key, value);
    if (!records.empty()) out += header({"pax"}, 'x', records.size(), "pax") + padded(records);
    out += header(e, e.type, e.body.size(), e.path) + padded(e.body);
  }
  return out + std::string(1024, '\0');
}

inline Reader reader_of(std::string bytes, std::size_t chunk = 65536) {
  struct State {
    std::string bytes;
    std::size_t at = 0;
  };
  const auto state = std::make_shared<State>(State{std::move(bytes)});
  return [state, chunk](std::span<std::byte> out) -> Result<std::size_t> {
    const std::size_t n = std::min({out.size(), chunk, state->bytes.size() - state->at});
    std::memcpy(out.data(), state->bytes.data() + state->at, n);
    state->at += n;
    return n;
  };
}
inline Result<std::string> read_all(const Reader& reader) {
  std::string out;
  std::vector<std::byte> block(10000);
  for (;;) {
    const std::size_t n = TRY(reader(block));
    if (n == 0) return out;
    out.append(reinterpret_cast<const char*>(block.data()), n);
  }
}
/// Standard output of a shell command; its failure is in `status`.
inline std::string shell(const std::string& command, int* status = nullptr) {
  std::string out;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  char block[4096];
  while (const std::size_t n = std::fread(block, 1, sizeof block, pipe)) out.append(block, n);
  const int code = ::pclose(pipe);
  if (status) *status = code;
  return out;
}
inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}
inline void spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

struct LayerBytes {
  std::string blob, plain;
  std::string media_type = "application/vnd.oci.image.layer.v1.tar";
};
inline LayerBytes plain_layer(std::string tar) {
  return {tar, tar};
}

/// The smallest tree check_bootable() takes.
inline std::vector<Entry> bootable() {
  return {dir("sysroot"), dir("boot"), dir("usr"), file("usr/lib/modules/6.1/vmlinuz", "kernel"),
          file("usr/lib/modules/6.1/initramfs.img", "initramfs")};
}
inline std::vector<Entry> operator+(std::vector<Entry> a, const std::vector<Entry>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class EventLog : public Progress {
 public:
  void update(const ProgressEvent& event) override {
    const std::lock_guard lock(mutex_);
    events.push_back(event);
  }
  void note(std::string_view) override {}
  void result(std::string_view) override {}
  std::vector<ProgressEvent> events;

 private:
  std::mutex mutex_;
};

class ImportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "rasupd-import-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory = name;
    repo_path = directory + "/repo";
    int status = 0;
    const std::string said = shell("ostree init --mode=bare --repo=" + repo_path, &status);
    ASSERT_EQ(status, 0) << said;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  World world() { return World{directory, directory, clock, runner, progress, stop.get_token()}; }
  Repo open() { return std::move(*Repo::open(repo_path)); }

  ImageDocuments image_of(const std::vector<LayerBytes>& layers, const std::string& tag = "1") {
    ImageDocuments image;
    image.reference = *Reference::parse("registry.example/os:" + tag);
    std::string manifest =
        R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[)";
    std::string diff_ids;
    for (const LayerBytes& layer : layers) {
      const std::string digest = "sha256:" + sha256_hex(rasupd::as_bytes(layer.blob));
      blobs[digest] = layer.blob;
      const char* comma = diff_ids.empty() ? "" : ",";
      manifest += comma +
                  (R"({"mediaType":")" + layer.media_type + R"(","digest":")" + digest + R"(","size":)") +
                  std::to_string(layer.blob.size()) + "}";
      diff_ids += comma + ("\"sha256:" + sha256_hex(rasupd::as_bytes(layer.plain))) + "\"";
    }
    image.config_bytes =
        R"({"architecture":"amd64","os":"linux","config":{"Labels":{"containers.bootc":"1","org.opencontainers.image.version":"1.2"}},"rootfs":{"type":"layers","diff_ids":[)" +
        diff_ids + "]}}";
    manifest += R"(],"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:)" +
                sha256_hex(rasupd::as_bytes(image.config_bytes)) + R"(","size":)" +
                std::to_string(image.config_bytes.size()) + "}}";
    image.manifest_bytes = manifest;
    image.manifest_digest = Digest::of_hex(sha256_hex(rasupd::as_bytes(manifest)));
    auto parsed = parse_manifest(manifest, kOciManifest);
    auto config = parse_config(image.config_bytes);
    if (!parsed) ADD_FAILURE() << parsed.error().message;
    if (!config) ADD_FAILURE() << config.error().message;
    image.manifest = *parsed;
    image.config = *config;
    return image;
  }
  Result<Imported> import(const ImageDocuments& image, unsigned parallel = 2) {
    Repo repo = open();
    const World w = world();
    const Fetch fetch = [this](const Descriptor& layer) -> Result<Reader> {
      ++fetched;
      return reader_of(blobs.at(layer.digest.str()));
    };
    const ImportPlan plan = TRY(plan_import(repo, image.manifest, image.config));
    return import_with(w, repo, fetch, image, plan, ImportOptions{parallel});
  }
  /// Imports tar layers on top of the smallest bootable one.
  Result<Imported> import_layers(const std::vector<std::vector<Entry>>& uppers) {
    std::vector<LayerBytes> layers = {plain_layer(tar(bootable()))};
    for (const auto& upper : uppers) layers.push_back(plain_layer(tar(upper)));
    return import(image_of(layers));
  }
  /// path → "mode uid gid size[ -> target]" of everything in a commit, as `ostree ls` says.
  std::map<std::string, std::string> tree(const std::string& commit) {
    std::map<std::string, std::string> out;
    std::istringstream lines(shell("LC_ALL=C.UTF-8 ostree ls -R --repo=" + repo_path + " " + commit));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string mode, uid, gid, size, path, arrow, target;
      words >> mode >> uid >> gid >> size >> path >> arrow >> target;
      out[path] =
          mode[0] == 'l' ? "-> " + target : mode + " " + uid + ":" + gid + (mode[0] == 'd' ? "" : " " + size);
    }
    return out;
  }
  std::string cat(const std::string& commit, const std::string& path) {
    return shell("LC_ALL=C.UTF-8 ostree cat --repo=" + repo_path + " " + commit + " '" + path + "'");
  }
  void expect_fsck_clean() {
    int status = 0;
    const std::string said = shell("ostree fsck --repo=" + repo_path, &status);
    EXPECT_EQ(status, 0) << said;
  }

  std::string directory, repo_path;
  std::map<std::string, std::string> blobs;
  std::atomic<int> fetched{0};
  fakes::FakeClock clock;
  fakes::FakeRunner runner;
  EventLog progress;
  std::stop_source stop;
};

}  // namespace rasupd::kit
